"""What to say, and how."""
from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple, Sequence, Union

from . import _library

if TYPE_CHECKING:
    from typing import TypedDict

    class SharedOptions(TypedDict, total=False):
        """Keywords of `speak_batch`. What is left out, or None, is the model's own."""

        voice: str | None  # a named voice; Kokoro also takes mixes: "af_bella(2)+af_sky(1)"
        voices: dict[int, str] | None  # S2: the voice of each speaker of the text, {0: "clara", 1: "hugo"}
        references: Sequence[Reference | tuple[Any, str]] | None  # clips of a voice to follow
        temperature: float | None  # 0 to 2
        top_p: float | None  # 0 to 1; 0 is greedy
        repetition_penalty: float | None  # over 0, at most 2
        top_k: int | None  # 0: no limit
        max_new_tokens: int | None  # frames of one utterance; 0: up to the context limit
        chunk_length: int | None  # longest utterance in bytes; 0: never split
        normalise: bool | None  # speak English numbers, dates, money as words
        special_tokens: bool | None  # spellings like <|im_end|> are control tokens
        speed: float | None  # 0.25 to 4
        volume: float | None  # 0 to 10
        language: str | None  # Kokoro: "en-us", "fr-fr", ...
        phonemes: str | None  # Kokoro: instead of the text
        strict: bool | None  # what the model has no use for is an error instead of a warning
        strict_phonemes: bool | None
        trim_joins: bool | None
        timeout: float | None  # seconds for the whole request; a reader's own time does not count
        client: str | None  # whose request it is: clients share the engine evenly
        # Deviations from the official sampling; absent: the same as the official code.
        penalise_window_semantics: bool | None
        check_first_frame_end: bool | None
        keep_last_frame_without_end: bool | None

    class Options(SharedOptions, total=False):
        """Keywords of `speak` and its relatives."""

        seed: int | None  # the same seed gives the same sound; absent: drawn, and told by Speech.seed


# Of the engine under the same name, and with the same meaning (speech_request.h).
FIELDS = frozenset((
    "voice", "voices", "seed", "temperature", "top_p", "repetition_penalty", "top_k", "max_new_tokens",
    "chunk_length", "normalise", "special_tokens", "speed", "volume", "language", "phonemes", "strict", "strict_phonemes",
    "trim_joins", "client", "penalise_window_semantics", "check_first_frame_end", "keep_last_frame_without_end"))
_TEXTS = frozenset(("voice", "language", "phonemes", "client"))
_INTEGERS = frozenset(("seed", "top_k", "max_new_tokens", "chunk_length"))
_NUMBERS = frozenset(("temperature", "top_p", "repetition_penalty", "speed", "volume", "timeout"))


class EncodedClip(NamedTuple):
    """A clip as the codes of the model (`Engine.encode`): a reference that costs no encoding."""

    data: bytes  # int32 [frames, codebooks]
    frames: int
    codebooks: int

    @property
    def codes(self) -> Any:
        """int32 [frames, codebooks]: an array of numpy where it is installed, otherwise a memoryview."""
        return shaped(self.data, "i", (self.frames, self.codebooks))


class Reference(NamedTuple):
    """A recording of a voice to follow, with the words spoken in it."""

    audio: Union[str, os.PathLike, bytes, EncodedClip]  # a path, the bytes of a sound file, or its codes
    text: str


class Request:
    """A text with its options, for `speak_batch` and wherever a text is taken. The options are those of `speak`."""

    __slots__ = ("text", "options")

    def __init__(self, text: str = "", **options: Any):
        if not isinstance(text, str):
            raise TypeError(f"text: expected str, got {type(text).__name__}")
        self.text = text
        self.options = options

    def __repr__(self) -> str:
        return "Request(" + ", ".join([repr(self.text), *(f"{k}={v!r}" for k, v in self.options.items())]) + ")"


def shaped(data: bytes, letter: str, shape: tuple[int, ...]) -> Any:
    """Items of 4 bytes, "f" or "i", as an array of numpy or a memoryview."""
    try:
        import numpy
    except ImportError:
        return memoryview(data).cast(letter, shape) if 0 not in shape else memoryview(data).cast(letter)
    return numpy.frombuffer(data, {"f": numpy.float32, "i": numpy.int32}[letter]).reshape(shape)


def with_defaults(item: str | Request, defaults: dict[str, Any]) -> Request:
    """An item with the options that it does not have itself."""
    if isinstance(item, Request):
        return Request(item.text, **{**defaults, **item.options})
    return Request(item, **defaults)


def check_type(name: str, value: Any) -> None:
    """Of the options that are no texts: a number is no bool, and no text that looks like one. Raises TypeError."""
    if name in _INTEGERS:
        expected, fits = "int", hasattr(value, "__index__") and not isinstance(value, bool)
    elif name in _NUMBERS:
        expected, fits = "a number", hasattr(value, "__float__") and not isinstance(value, bool)
    else:
        expected, fits = "bool", isinstance(value, bool)
    if not fits:
        raise TypeError(f"{name}: expected {expected}, got {type(value).__name__}")


def _voices_argument(voices: Any) -> bytes:
    """Voices by speaker, as the library reads them: "0=clara,1=hugo"."""
    if not isinstance(voices, dict):
        raise TypeError(f'voices: expected a dict such as {{0: "clara", 1: "hugo"}}, got {type(voices).__name__}')
    for speaker, voice in voices.items():
        if not isinstance(speaker, int) or isinstance(speaker, bool):
            raise TypeError(f"voices: expected int as the number of a speaker, got {type(speaker).__name__}")
        if not isinstance(voice, str):
            raise TypeError(f"voices[{speaker}]: expected str, got {type(voice).__name__}")
    return _library.text_argument("voices", ",".join(f"{speaker}={voice}" for speaker, voice in voices.items()))


def _add_reference(handle: _library.Handle, number: int, reference: Any) -> None:
    name = f"references[{number}]"
    if not isinstance(reference, tuple) or len(reference) != 2:
        raise TypeError(f"{name}: expected shoal.Reference(audio, text), got {type(reference).__name__}")
    audio, text = reference
    words = _library.text_argument(f"{name}.text", text)
    if isinstance(audio, EncodedClip):
        _library.call("shoal_request_add_codes", handle.value, audio.data, len(audio.data) // 4, words)
    else:
        data = _library.audio_argument(f"{name}.audio", audio)
        _library.call("shoal_request_add_reference", handle.value, data, len(data), words)


def request_handle(request: Request, **fixed: Any) -> _library.Handle:
    """The request as the library has it. `fixed` are further fields. Raises TypeError, InvalidArgument, NotFound."""
    def put(name: str, value: bytes) -> None:
        _library.call("shoal_request_set", handle.value, name.encode(), value)

    handle = _library.Handle(_library.call_out("shoal_request_new"), "shoal_request_free")
    put("text", _library.text_argument("text", request.text))
    for name, value in {**request.options, **fixed}.items():
        if name not in FIELDS and name not in ("references", "timeout", "delivery"):
            raise TypeError(f"{name}: there is no such option")
        if value is None:
            continue
        if name == "references":
            if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__"):
                raise TypeError(f"references: expected a list of shoal.Reference, got {type(value).__name__}")
            for number, reference in enumerate(value):
                _add_reference(handle, number, reference)
        elif name == "timeout":
            check_type(name, value)
            put("timeout_ms", str(max(1, round(float(value) * 1000)) if value > 0 else 0).encode())
        elif name == "voices":
            put(name, _voices_argument(value))
        elif name in _TEXTS or name == "delivery":
            put(name, _library.text_argument(name, value))
        else:
            check_type(name, value)
            put(name, _library.value_argument(name, value))
    return handle
