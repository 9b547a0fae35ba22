"""The engine: one model that serves many requests at once."""
from __future__ import annotations

import ctypes
import os
import weakref
from typing import TYPE_CHECKING, Any, Callable, Iterable

from . import _errors, _library
from ._batch import AsyncBatch, Batch, BatchResult
from ._request import EncodedClip, Request, request_handle, with_defaults
from ._settings import config_handle
from ._speech import Sound, Speech
from ._streams import AsyncStream, Stream
from ._voices import Voices
from ._waiting import interruptible

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._request import Options, SharedOptions

_open_engines: weakref.WeakSet[Engine] = weakref.WeakSet()


class Engine:
    """Loads a model and is ready when the constructor returns.

    model        a folder in an official layout (OpenAudio S1-mini, Kokoro-82M, ...); "" is the built-in voice
    device       "auto", "cpu", "cuda", "cuda:N"
    config       a TOML file of settings; environment=True also reads the variables SHOAL_*
    **settings   any other of docs/SETTINGS.md: precision="float32", threads=4, references_dir="voices", ...

    Every method may be called from any thread; none holds the interpreter's lock while the engine works. What waits
    can be interrupted with Ctrl-C. Several engines may live side by side. An engine belongs to the process that made
    it: start it after a fork, or use multiprocessing's "spawn".

    Raises InvalidArgument (settings), NotFound, CorruptFile (the model), Unavailable (the device), ResourceExhausted
    (memory, with figures).
    """

    _handle: _library.Handle | None = None

    def __init__(self, model: str | os.PathLike[str] = "", *, device: str | None = None,
                 config: str | os.PathLike[str] | None = None, environment: bool = False, **settings: Any):
        self._environment = (config, environment)
        chosen = config_handle(model, device, config, environment, settings)
        handle = _library.Handle(_library.call_out("shoal_engine_new", chosen.value), "shoal_engine_free_later")
        _open_engines.add(self)
        self._handle = handle
        try:
            interruptible(_start, handle)
            self._voices = Voices(_library.Handle(_library.call_out("shoal_engine_voices", handle.value),
                                                  "shoal_voices_free"))
        except BaseException:
            self._handle = None
            raise

    def _running(self) -> _library.Handle:
        handle = self._handle
        if handle is None:
            raise _errors.Unavailable("engine: it is closed")
        return handle

    # ---------------------------------------------------------------------------------------------- speaking

    def speak(self, text: str | Request, **options: Unpack[Options]) -> Speech:
        """Speaks a text and waits for all of it. The options are those of `shoal.Request` (docs/PYTHON.md).

        Raises InvalidArgument, NotFound (voice), TooLarge, ResourceExhausted (the queue is full), DeadlineExceeded,
        Unavailable (the engine is closed, or was meanwhile)."""
        with self._submit(Stream, text, options, delivery="whole") as stream:
            return stream.read_all()

    def stream(self, text: str | Request, **options: Unpack[Options]) -> Stream:
        """The same, piece by piece: the first comes after milliseconds. The engine works ahead of the reader."""
        return self._submit(Stream, text, options)

    async def speak_async(self, text: str | Request, **options: Unpack[Options]) -> Speech:
        """`speak` for asyncio. Cancelling the task cancels the speech."""
        async with self._submit(AsyncStream, text, options, delivery="whole") as stream:
            return await stream.read_all()

    def stream_async(self, text: str | Request, **options: Unpack[Options]) -> AsyncStream:
        """`stream` for asyncio: `async for chunk in engine.stream_async(...)`."""
        return self._submit(AsyncStream, text, options)

    def _submit(self, kind: Any, text: str | Request, options: Any, **fixed: Any) -> Any:
        request = request_handle(with_defaults(text, options), **fixed)
        speech = _library.call_out("shoal_engine_submit", self._running().value, request.value, None)
        return kind(self, _library.Handle(speech, "shoal_speech_free"))

    def speak_batch(self, items: Iterable[str | Request], *, seed: int | None = None, max_in_flight: int = 0,
                    max_item_s: float = 0, on_item: Callable[[BatchResult], Any] | None = None,
                    **options: Unpack[SharedOptions]) -> list[BatchResult]:
        """Speaks many texts; results in their order. The error of an item is its own.

        seed            item i without a seed of its own gets one that follows from (seed, i)
        max_in_flight   items in the engine at once; 0: as many as fit, leaving most of its queue to others
        max_item_s      an item whose sound grows longer ends with TooLarge; 0: no limit
        on_item         called here with each result as it comes; an exception cancels the rest
        **options       of items that do not have them
        """
        return Batch(self._running(), items, seed, max_in_flight, max_item_s, dict(options)).run(on_item)

    async def speak_batch_async(self, items: Iterable[str | Request], *, seed: int | None = None,
                                max_in_flight: int = 0, max_item_s: float = 0,
                                on_item: Callable[[BatchResult], Any] | None = None,
                                **options: Unpack[SharedOptions]) -> list[BatchResult]:
        """`speak_batch` for asyncio. Cancelling the task cancels the batch."""
        return await AsyncBatch(self._running(), items, seed, max_in_flight, max_item_s, dict(options)).run(on_item)

    # ------------------------------------------------------------------------------------------ voices, codes

    @property
    def voices(self) -> Voices:
        """The named voices: list, add, rename, remove."""
        self._running()
        return self._voices

    def encode(self, audio: str | os.PathLike[str] | bytes) -> EncodedClip:
        """A sound file (a path, or its bytes) as codes of the model. Raises CorruptFile, TooLarge, Unsupported."""
        data = _library.audio_argument("audio", audio)
        codebooks = ctypes.c_int32()

        def encode() -> bytes:
            out = ctypes.c_void_p()
            _library.call("shoal_engine_encode", self._running().value, data, len(data), ctypes.byref(out),
                          ctypes.byref(codebooks))
            return _library.take_buffer(out.value)

        codes = interruptible(encode)
        return EncodedClip(codes, len(codes) // 4 // max(1, codebooks.value), codebooks.value)

    def decode(self, clip: EncodedClip | Any) -> Sound:
        """Codes back to sound: an EncodedClip, or a buffer of int32 [frames, codebooks]. Raises InvalidArgument."""
        codes = clip.data if isinstance(clip, EncodedClip) else memoryview(clip).cast("B").tobytes()
        samples = interruptible(_library.call_bytes, "shoal_engine_decode", self._running().value, codes,
                                len(codes) // 4)
        return Sound(samples, self.sample_rate)

    def phonemize(self, text: str, *, language: str = "", normalise: bool = True) -> dict[str, Any]:
        """How a text would be read, by models of phonemes: {"chunks": [...], "warnings": [...]}. Raises Unsupported."""
        return interruptible(_library.call_json, "shoal_engine_phonemize", self._running().value,
                             _library.text_argument("text", text), _library.text_argument("language", language),
                             int(normalise))

    # --------------------------------------------------------------------------------------- what it is, and does

    @property
    def sample_rate(self) -> int:
        """Hz."""
        hz = ctypes.c_int32()
        _library.call("shoal_engine_sample_rate", self._running().value, ctypes.byref(hz))
        return hz.value

    @property
    def traits(self) -> dict[str, Any]:
        """What the model understands: family, phonemes, own_voices, references, speakers, tags, codec."""
        return _library.call_json("shoal_engine_traits", self._running().value)

    def stats(self) -> dict[str, Any]:
        """What the engine has counted, and what it does now: the figures of the server's GET /v1/stats."""
        return _library.call_json("shoal_engine_statistics", self._running().value)

    def health(self) -> dict[str, Any]:
        """State, model, device and memory. Works on a closed engine too, whose state is "stopped"."""
        handle = self._handle
        if handle is None:
            return {"state": "stopped"}
        return _library.call_json("shoal_engine_health", handle.value)

    def self_test(self) -> dict[str, Any]:
        """Whether the device computes correctly: {"device", "gpu_available", "error", ...}. Milliseconds."""
        return _library.call_json("shoal_engine_self_test", self._running().value)

    # ------------------------------------------------------------------------------------------------- its life

    def reload(self, model: str | os.PathLike[str] | None = None, *, device: str | None = None,
               **settings: Any) -> None:
        """Loads the model again, or another one, beside the old one and hands over: requests in flight end on the old
        one. If it raises, the old one serves on. Without arguments the settings stay as they are."""
        handle = self._running()
        if model is None and device is None and not settings:
            interruptible(_library.call, "shoal_engine_reload", handle.value, None)
            return
        chosen = config_handle(model or "", device, *self._environment, settings)
        interruptible(lambda: _library.call("shoal_engine_reload", handle.value, chosen.value))

    def close(self, grace: float = 0) -> None:
        """Refuses new requests, gives those that run `grace` seconds to end, cancels the rest and frees the model. A
        second call does nothing."""
        handle, self._handle = self._handle, None
        if handle is not None:
            interruptible(_stop, handle, round(grace * 1000))

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        health = self.health()
        return f"<shoal.Engine {health.get('model', '')} on {health.get('device', 'nothing')}, {health['state']}>"


def _start(handle: _library.Handle) -> None:
    _library.call("shoal_engine_start", handle.value)


def _stop(handle: _library.Handle, grace_ms: int) -> None:
    _library.call("shoal_engine_stop", handle.value, grace_ms)


def stop_all() -> None:
    """The end of the interpreter: no thread of the library may look for Python afterwards."""
    for engine in list(_open_engines):
        handle = engine._handle
        if handle is not None:
            try:
                _stop(handle, 0)
            except _errors.Error:
                pass
