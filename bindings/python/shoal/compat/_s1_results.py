"""What the older engine's methods return. Members can be read as attributes and by name: result["success"]."""
from __future__ import annotations

from typing import Any

from .._speech import Speech


class _Record:
    __slots__: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> Any:
        if name not in self.__slots__:
            raise KeyError(name)
        return getattr(self, name)

    def __repr__(self) -> str:
        members = (f"{name}={getattr(self, name)!r:.60}" for name in self.__slots__)
        return f"{type(self).__name__}({', '.join(members)})"


class GenerationMetrics(_Record):
    __slots__ = ("total_time_seconds", "tokens_generated", "tokens_per_second", "time_to_first_token_seconds",
                 "audio_duration_seconds", "realtime_factor")

    def __init__(self, *values: float):
        for name, value in zip(self.__slots__, values):
            setattr(self, name, value)

    @classmethod
    def of(cls, speech: Speech) -> GenerationMetrics:
        """realtime_factor is seconds of sound per second of work, as the older engine counts."""
        s = speech.summary
        total = s.total_s or 1e-9
        return cls(s.total_s, s.frames, s.frames / total, s.first_audio_s, s.audio_s, s.audio_s / total)


class GenerationResponse(_Record):
    __slots__ = ("success", "audio", "audio_bytes", "error", "metrics")

    def __init__(self, success: bool, audio: tuple[int, Any] | None = None, audio_bytes: bytes | None = None,
                 error: str | None = None, metrics: GenerationMetrics | None = None):
        self.success = success
        self.audio = audio  # (sample rate, float32 [samples])
        self.audio_bytes = audio_bytes  # a wav file
        self.error = error
        self.metrics = metrics


class BatchItemResult(_Record):
    __slots__ = ("success", "audio", "audio_bytes", "generation_time", "error")

    def __init__(self, success: bool, audio: tuple[int, Any] | None, audio_bytes: bytes | None,
                 generation_time: float, error: str | None):
        self.success = success
        self.audio = audio
        self.audio_bytes = audio_bytes
        self.generation_time = generation_time  # seconds from the start of the batch
        self.error = error


class BatchGenerationResponse(_Record):
    __slots__ = ("success", "results", "total_time")

    def __init__(self, success: bool, results: list[BatchItemResult], total_time: float):
        self.success = success  # of every item
        self.results = results  # in the order of the texts
        self.total_time = total_time  # seconds


class InferenceResult(_Record):
    __slots__ = ("code", "audio", "error")

    def __init__(self, code: str, audio: tuple[int, Any] | None, error: Exception | None):
        self.code = code  # "header", "segment", "final", "error"
        self.audio = audio  # (sample rate, float32 [samples]); absent from headers and errors
        self.error = error
