"""Sound that was spoken: a whole speech, or a piece of one."""
from __future__ import annotations

import ctypes
import os
import threading
from typing import Any, NamedTuple

from . import _errors, _library
from ._request import shaped


class Word(NamedTuple):
    """When a word, or a punctuation mark, is heard: seconds from the first sample of the speech."""

    word: str
    start: float
    end: float


class Summary(NamedTuple):
    """The cost and outcome of a request. Times are seconds since it was submitted."""

    seed: int  # that was used
    sample_rate: int  # Hz
    samples: int
    audio_s: float  # seconds of sound
    frames: int  # spoken
    utterances: int  # pieces of text spoken
    cut_at_frames: int  # length of the last utterance that ran out of frames before its end; 0: none
    prompt_columns: int
    cached_columns: int
    computed_columns: int
    preemptions: int
    underruns: int  # pieces that came after a real-time listener had run dry
    prepared_s: float
    admitted_s: float
    first_audio_s: float  # the first samples could be read
    total_s: float

    @classmethod
    def of(cls, struct: _library.SummaryStruct) -> Summary:
        names = {"sample_rate": "sample_rate_hz"}
        return cls(*(getattr(struct, names.get(name, name)) for name in cls._fields))


class Sound:
    """Mono samples at a rate. The bytes stay as the engine made them; every view is made when it is asked for."""

    __slots__ = ("data", "sample_rate", "__weakref__")

    def __init__(self, data: bytes, sample_rate: int):
        self.data = data  # float32, native order
        self.sample_rate = sample_rate  # Hz

    @property
    def samples(self) -> Any:
        """float32 [samples], -1 to 1: an array of numpy where it is installed, otherwise a memoryview. Read-only."""
        return shaped(self.data, "f", (len(self),))

    @property
    def buffer(self) -> memoryview:
        """The same samples as a memoryview of floats, numpy or not."""
        return memoryview(self.data).cast("f")

    @property
    def pcm16(self) -> bytes:
        """16-bit samples in native (little-endian) order, rounded as in the files that Shoal writes."""
        out = (ctypes.c_int16 * len(self))()
        samples, count = _library.floats(self.data)
        _library.call("shoal_to_pcm16", samples, count, out)
        return bytes(out)

    @property
    def duration(self) -> float:
        """Seconds."""
        return len(self) / self.sample_rate

    def to_bytes(self, format: str = "wav", *, bitrate: int = 0) -> bytes:
        """A whole sound file: wav, pcm, flac, opus, mp3, aac, or of 8 kHz ulaw or alaw. bitrate: bit/s; 0 is the
        format's default for speech. Raises InvalidArgument for a rate or bitrate that the format does not know."""
        samples, count = _library.floats(self.data)
        return _library.call_bytes("shoal_encode_sound", _library.text_argument("format", format), self.sample_rate,
                                   int(bitrate), samples, count)

    def save(self, path: str | os.PathLike[str], format: str | None = None, *, bitrate: int = 0) -> None:
        """Writes a sound file, in the format that its ending names unless one is given. The file is complete or not
        there. The bytes are those of `shoal say`. Raises InvalidArgument, FileError."""
        path = os.fspath(path)
        if format is None:
            format = os.path.splitext(path)[1][1:].lower() or "wav"
            format = {"ogg": "opus"}.get(format, format)
        data = self.to_bytes(format, bitrate=bitrate)
        # A device or a pipe is written to; a file is replaced.
        direct = os.path.exists(path) and not os.path.isfile(path)
        target = path if direct else f"{path}.{os.getpid()}.{threading.get_ident()}.part"
        try:
            with open(target, "wb") as file:
                file.write(data)
            if not direct:
                os.replace(target, path)
        except OSError as error:
            if not direct and os.path.exists(target):
                os.unlink(target)
            raise _errors.FileError(f"{path}: {error.strerror}") from None

    def __len__(self) -> int:
        return len(self.data) // 4

    def _repr_html_(self) -> str:
        """A player, in a notebook."""
        import base64
        source = base64.b64encode(self.to_bytes("wav")).decode()
        return f'<audio controls src="data:audio/wav;base64,{source}"></audio>'


class Chunk(Sound):
    """A piece of a stream, to be played after those before it."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<shoal.Chunk of {self.duration:.3f} s at {self.sample_rate} Hz>"


class Speech(Sound):
    """Everything that was spoken for one request. In a notebook it shows as a player."""

    __slots__ = ("summary", "words", "warnings", "_codes")

    def __init__(self, data: bytes, summary: Summary, words: list[Word], warnings: list[str], codes: bytes = b""):
        super().__init__(data, summary.sample_rate)
        self.summary = summary
        self.words = words  # of models that know when a word is heard (Kokoro); otherwise empty
        self.warnings = warnings  # what the engine has to say about the request
        self._codes = codes

    @property
    def seed(self) -> int:
        """The seed that was used: with it the same text gives the same sound."""
        return self.summary.seed

    @property
    def codes(self) -> Any:
        """int32 [frames, codebooks] of models with codes; otherwise empty."""
        frames = self.summary.frames
        count = len(self._codes) // 4
        return shaped(self._codes, "i", (frames, count // frames if frames else 0) if count else (0,))

    def __repr__(self) -> str:
        return f"<shoal.Speech of {self.duration:.2f} s at {self.sample_rate} Hz, seed {self.seed}>"
