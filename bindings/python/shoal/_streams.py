"""Speeches in the making, read piece by piece: by a thread, or by an event loop."""
from __future__ import annotations

import ctypes
from typing import Any

from . import _library
from ._speech import Chunk, Speech, Summary, Word
from ._waiting import PATIENCE_MS

_END = object()  # nothing more will come
_WAIT = object()  # nothing yet


class BaseStream:
    """What both kinds share: the handle, the end, and what is known about the request."""

    def __init__(self, engine: Any, handle: _library.Handle):
        self._engine = engine  # an engine that nobody else refers to must not stop under its streams
        self._handle: _library.Handle | None = handle
        self._closing = False
        self._error = _library.ErrorStruct()
        self._closed: tuple[Summary, list[Word], list[str], bytes] | None = None
        rate = ctypes.c_int32()
        _library.call("shoal_speech_sample_rate", handle.value, ctypes.byref(rate))
        self.sample_rate: int = rate.value  # Hz

    def _take(self, timeout_ms: int) -> Any:
        """A Chunk, _END or _WAIT. Raises the error that ended the speech."""
        handle = self._handle
        if handle is None:
            return _END
        out = ctypes.c_void_p()
        code = _library.library().shoal_speech_next(handle.value, timeout_ms, ctypes.byref(out),
                                                    ctypes.byref(self._error))
        if code == _library.OK:
            return Chunk(_library.take_buffer(out.value), self.sample_rate)
        if code == _library.NOT_YET:
            return _WAIT
        if code == _library.END:
            return _END
        if self._closing and code == _library.CANCELLED:  # by close(), on another thread
            return _END
        raise self._error.exception()

    def cancel(self) -> None:
        """Ends the speech: whoever reads it gets shoal.Cancelled after the sound that was there. Never waits."""
        handle = self._handle
        if handle is not None:
            _library.call("shoal_speech_cancel", handle.value)

    def close(self) -> None:
        """Cancels the speech unless it has ended, and lets go of it: reading it then ends. Never waits."""
        handle = self._handle
        if handle is None:
            return
        self._closing = True  # before a reader can learn of it
        _library.call("shoal_speech_cancel", handle.value)
        self._closed = self._all_known()
        self._handle = None

    def _all_known(self) -> tuple[Summary, list[Word], list[str], bytes]:
        handle = self._handle
        if handle is None:
            assert self._closed is not None
            return self._closed
        struct = _library.SummaryStruct()
        _library.call("shoal_speech_summary", handle.value, ctypes.byref(struct))
        words = [Word(entry["word"], entry["start_s"], entry["end_s"])
                 for entry in _library.call_json("shoal_speech_words", handle.value, 0)]
        return (Summary.of(struct), words, _library.call_json("shoal_speech_warnings", handle.value),
                _library.call_bytes("shoal_speech_codes", handle.value))

    @property
    def summary(self) -> Summary:
        """The cost and outcome; complete once the speech has ended."""
        return self._all_known()[0]

    @property
    def words(self) -> list[Word]:
        """The words spoken so far, of models that know (Kokoro). A word comes with the samples in which it ends."""
        return self._all_known()[1]

    @property
    def warnings(self) -> list[str]:
        """What the engine has to say about the request."""
        return self._all_known()[2]

    @property
    def progress(self) -> float:
        """0 to 1, estimated from the text spoken so far."""
        handle = self._handle
        if handle is None:
            return 1.0
        struct = _library.ProgressStruct()
        _library.call("shoal_speech_progress", handle.value, ctypes.byref(struct))
        return struct.fraction

    def _speech(self, pieces: list[bytes]) -> Speech:
        """Of the pieces, once it has ended."""
        self._closed = self._all_known()
        self._handle = None
        return Speech(b"".join(pieces), *self._closed)


class Stream(BaseStream):
    """Pieces of sound as they are made: `for chunk in stream`. Leaving early: close(), `with`, or dropping it."""

    def __iter__(self) -> Stream:
        return self

    def __next__(self) -> Chunk:
        while True:
            chunk = self._take(PATIENCE_MS)
            if chunk is _END:
                raise StopIteration
            if chunk is not _WAIT:
                return chunk

    def read_all(self) -> Speech:
        """Waits to the end; everything that was not read yet, as one speech."""
        return self._speech([chunk.data for chunk in self])

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()


class AsyncStream(BaseStream):
    """The same for asyncio: `async for chunk in stream`. It belongs to the event loop that reads it first. A task that
    is cancelled while it waits here cancels the speech."""

    _inbox: Any = None
    _sleeper: Any = None
    _token = 0

    def __aiter__(self) -> AsyncStream:
        return self

    async def __anext__(self) -> Chunk:
        self._bind()
        sleeper = self._sleeper
        if sleeper.busy:
            raise RuntimeError("another task waits for this stream already")
        while True:
            sleeper.reset()
            chunk = self._take(0)
            if chunk is _END:
                raise StopAsyncIteration
            if chunk is not _WAIT:
                return chunk
            try:
                await sleeper.sleep()
            except BaseException:
                self.close()
                raise

    def _bind(self) -> None:
        from ._inbox import Sleeper, inbox_of_running_loop
        inbox = inbox_of_running_loop()
        if self._inbox is None:
            self._inbox, self._sleeper, self._token = inbox, Sleeper(), inbox.enter(self)
            handle = self._handle
            if handle is not None:
                _library.call("shoal_speech_watch", handle.value, inbox.mailbox.value, self._token)
        elif self._inbox is not inbox:
            raise RuntimeError("this stream belongs to another event loop")

    def _wake(self) -> None:
        self._sleeper.wake()

    def close(self) -> None:
        super().close()
        if self._inbox is not None:
            self._inbox.leave(self._token)
            self._sleeper.wake()

    async def read_all(self) -> Speech:
        """Waits to the end; everything that was not read yet, as one speech."""
        try:
            return self._speech([chunk.data async for chunk in self])
        except BaseException:
            self.close()
            raise

    async def aclose(self) -> None:
        self.close()

    async def __aenter__(self) -> AsyncStream:
        return self

    async def __aexit__(self, *exception: Any) -> None:
        self.close()
