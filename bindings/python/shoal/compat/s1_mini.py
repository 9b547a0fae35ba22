"""The classes that scripts of the older S1-mini engine use, on Shoal. Change their import and keep the rest:

    from shoal.compat.s1_mini import ProductionTTSEngine, EngineConfig

What an older name meant is kept where it has a meaning here. What has none is refused by name with shoal.Unsupported.
Arrays are numpy's where it is installed, otherwise memoryviews; there are no tensors.
"""
from __future__ import annotations

import os
import time
from typing import Any, Iterator, NamedTuple, Sequence

from .. import _errors
from .._engine import Engine
from .._request import Reference, Request
from .._speech import Speech
from ._kokoro import KokoroPipeline
from ._s1_config import EngineConfig
from ._s1_results import (BatchGenerationResponse, BatchItemResult, GenerationMetrics, GenerationResponse,
                          InferenceResult)

__all__ = [
    "BatchGenerationResponse", "BatchItemResult", "EngineConfig", "GenerationMetrics", "GenerationResponse",
    "InferenceResult", "KokoroPipeline", "ProductionTTSEngine", "ServeReferenceAudio", "ServeTTSRequest",
    "TTSInferenceEngine", "from_pretrained",
]


class ServeReferenceAudio(NamedTuple):
    audio: bytes
    text: str


class ServeTTSRequest:
    """A request of `inference`, with the defaults of the official one. Unknown fields are refused."""

    def __init__(self, text: str, *, references: Sequence[Any] = (), reference_id: str | None = None,
                 seed: int | None = None, max_new_tokens: int = 1024, chunk_length: int = 200, top_p: float = 0.8,
                 repetition_penalty: float = 1.1, temperature: float = 0.8, streaming: bool = False,
                 format: str = "wav", use_memory_cache: str = "off", normalize: bool | None = None):
        self.text = text
        self.references = list(references)
        self.reference_id = reference_id
        self.seed = seed
        self.max_new_tokens = max_new_tokens
        self.chunk_length = chunk_length
        self.top_p = top_p
        self.repetition_penalty = repetition_penalty
        self.temperature = temperature
        self.streaming = streaming
        self.format = format  # of servers; `inference` gives samples
        self.use_memory_cache = use_memory_cache  # encoded clips are always kept
        self.normalize = normalize


class ProductionTTSEngine:
    """The older engine's methods. `engine.shoal` is the shoal.Engine behind it."""

    def __init__(self, config: EngineConfig | None = None):
        self.config = config or EngineConfig()
        self._engine: Engine | None = None

    @classmethod
    def from_pretrained(cls, model_dir: str | os.PathLike[str], compile: bool = True, precision: Any = None,
                        device: str = "auto") -> ProductionTTSEngine:
        """An engine that runs. precision: "float32", "bfloat16", "float16" or a torch dtype of that name."""
        engine = cls(EngineConfig(checkpoint_path=model_dir, device=device, compile_model=compile, precision=precision))
        engine.start()
        return engine

    @property
    def shoal(self) -> Engine:
        if self._engine is None:
            raise RuntimeError("engine is not running; call start() first")
        return self._engine

    @property
    def is_running(self) -> bool:
        return self._engine is not None

    def start(self) -> ProductionTTSEngine:
        """Loads the model; does nothing if it runs. Returns the engine."""
        if self._engine is None:
            self._engine = Engine(self.config.checkpoint_path, **self.config.settings())
        return self

    def stop(self) -> None:
        if self._engine is not None:
            self._engine.close()
            self._engine = None

    def __enter__(self) -> ProductionTTSEngine:
        return self.start()

    def __exit__(self, *exception: Any) -> None:
        self.stop()

    # -------------------------------------------------------------------------------------------------- one text

    def generate(self, text: str, reference_audio: Any = None, reference_id: str | None = None,
                 max_new_tokens: int | None = None, temperature: float | None = None, top_p: float | None = None,
                 repetition_penalty: float | None = None, chunk_length: int | None = None, seed: int | None = None,
                 timeout: float | None = None, return_bytes: bool = False, reference_text: str | None = None,
                 ) -> GenerationResponse:
        """Speaks one text; an error stands in the response. A clip (path or bytes) needs the words spoken in it."""
        engine = self.shoal
        try:
            options = self._options(max_new_tokens, temperature, top_p, repetition_penalty, chunk_length)
            references = self._references("reference_audio", reference_audio, reference_text)
            speech = engine.speak(text, voice=reference_id, references=references, seed=seed, timeout=timeout,
                                  **options)
        except _errors.Error as error:
            return GenerationResponse(False, error=str(error))
        return GenerationResponse(True, (speech.sample_rate, speech.samples),
                                  speech.to_bytes("wav") if return_bytes else None, None, GenerationMetrics.of(speech))

    def generate_stream(self, text: str, reference_audio: Any = None, reference_id: str | None = None,
                        max_new_tokens: int | None = None, temperature: float | None = None,
                        top_p: float | None = None, repetition_penalty: float | None = None,
                        chunk_length: int | None = None, seed: int | None = None, timeout: float | None = None,
                        reference_text: str | None = None) -> Iterator[InferenceResult]:
        """Results with code "header", "segment" for each piece, then "final" with everything; or "error"."""
        options = self._options(max_new_tokens, temperature, top_p, repetition_penalty, chunk_length)
        references = self._references("reference_audio", reference_audio, reference_text)
        return self._results(Request(text, voice=reference_id, references=references, seed=seed, timeout=timeout,
                                     **options), streaming=True)

    def inference(self, request: Any) -> Iterator[InferenceResult]:
        """A request with the fields of ServeTTSRequest: "final" with (rate, samples), or "error"; with `streaming` the
        pieces come first."""
        references = [entry if isinstance(entry, tuple) else _pair(entry) for entry in request.references]
        options = {name: getattr(request, name) for name in
                   ("seed", "max_new_tokens", "chunk_length", "top_p", "repetition_penalty", "temperature")}
        return self._results(
            Request(request.text, voice=request.reference_id, references=[Reference(*entry) for entry in references],
                    normalise=getattr(request, "normalize", None), **options), streaming=request.streaming)

    def _results(self, request: Request, streaming: bool) -> Iterator[InferenceResult]:
        try:
            with self.shoal.stream(request) as stream:
                if streaming:
                    yield InferenceResult("header", None, None)
                pieces = []
                for chunk in stream:
                    pieces.append(chunk.data)
                    if streaming:
                        yield InferenceResult("segment", (chunk.sample_rate, chunk.samples), None)
                speech = Speech(b"".join(pieces), stream.summary, stream.words, stream.warnings)
        except _errors.Error as error:
            yield InferenceResult("error", None, error)
            return
        yield InferenceResult("final", (speech.sample_rate, speech.samples), None)

    # ------------------------------------------------------------------------------------------------ many texts

    def generate_batch(self, texts: Sequence[str], reference_audios: Sequence[Any] | None = None,
                       reference_texts: Sequence[str | None] | None = None, max_new_tokens: int | None = None,
                       temperature: float | None = None, top_p: float | None = None,
                       repetition_penalty: float | None = None, chunk_length: int | None = None,
                       return_bytes: bool = True, seed: int | None = None,
                       timeout: float | None = None) -> BatchGenerationResponse:
        """Speaks many texts; results in their order, the error of an item in its result. The lists of references may
        hold None. generation_time is seconds from the start of the batch to the item's end."""
        collector = _Collector(return_bytes, len(texts))
        items = self._items(texts, reference_audios, reference_texts, collector)
        options = self._options(max_new_tokens, temperature, top_p, repetition_penalty, chunk_length)
        self.shoal.speak_batch(items, seed=seed, timeout=timeout, on_item=collector, **options)
        return collector.response()

    async def generate_batch_async(self, texts: Sequence[str], reference_audios: Sequence[Any] | None = None,
                                   reference_texts: Sequence[str | None] | None = None,
                                   max_new_tokens: int | None = None, temperature: float | None = None,
                                   top_p: float | None = None, repetition_penalty: float | None = None,
                                   chunk_length: int | None = None, return_bytes: bool = True,
                                   seed: int | None = None, timeout: float | None = None) -> BatchGenerationResponse:
        """`generate_batch` for asyncio."""
        collector = _Collector(return_bytes, len(texts))
        items = self._items(texts, reference_audios, reference_texts, collector)
        options = self._options(max_new_tokens, temperature, top_p, repetition_penalty, chunk_length)
        await self.shoal.speak_batch_async(items, seed=seed, timeout=timeout, on_item=collector, **options)
        return collector.response()

    def _items(self, texts: Sequence[str], audios: Sequence[Any] | None, words: Sequence[str | None] | None,
               collector: _Collector) -> list[Request]:
        if isinstance(texts, str):
            raise TypeError("texts: expected a list of str, got str")
        for name, values in (("reference_audios", audios), ("reference_texts", words)):
            if values is not None and len(values) != len(texts):
                raise _errors.InvalidArgument(f"{name}: expected one for each of {len(texts)} texts, "
                                              f"got {len(values)}")
        items = []
        for i, text in enumerate(texts):
            try:
                references = self._references(f"reference_audios[{i}]", audios[i] if audios else None,
                                              words[i] if words else None)
                items.append(Request(text, references=references))
            except _errors.Error as error:
                collector.refused[i] = error
                items.append(Request())  # keeps the place, on which the seeds of the others depend
        return items

    def _references(self, name: str, audio: Any, words: str | None) -> list[Reference] | None:
        if audio is None and words is None:
            return None
        if audio is None or words is None:
            missing = "a clip for these words" if audio is None else "the words spoken in the clip"
            raise _errors.InvalidArgument(f"{name}: {missing} is missing")
        return [Reference(audio, words)]

    def _options(self, max_new_tokens: int | None, temperature: float | None, top_p: float | None,
                 repetition_penalty: float | None, chunk_length: int | None) -> dict[str, Any]:
        given = {"max_new_tokens": max_new_tokens, "temperature": temperature, "top_p": top_p,
                 "repetition_penalty": repetition_penalty, "chunk_length": chunk_length}
        return {name: getattr(self.config, f"default_{name}") if value is None else value
                for name, value in given.items()}

    # ---------------------------------------------------------------------------------------------------- health

    def health_check(self) -> dict[str, Any]:
        """The members of vram are None on a CPU."""
        health: dict[str, Any] = {"state": "stopped"}
        waiting = 0
        if self._engine is not None:
            health, waiting = self._engine.health(), self._engine.stats()["queue"]["waiting"]
        memory = health.get("device_memory")
        ready = health["state"] in ("ready", "reloading")
        return {
            "healthy": ready, "status": "ok" if ready else health["state"], "is_running": self.is_running,
            "models_loaded": ready, "model_loaded": ready, "device": health.get("device", self.config.device),
            "vram": {name + "_gb": memory[name + "_bytes"] / 2**30 if memory else None for name in ("used", "total")},
            "queue": waiting, "uptime_s": health.get("uptime_s", 0.0),
        }


TTSInferenceEngine = ProductionTTSEngine
from_pretrained = ProductionTTSEngine.from_pretrained


def _pair(entry: Any) -> tuple[Any, str]:
    return (entry["audio"], entry["text"]) if isinstance(entry, dict) else (entry.audio, entry.text)


class _Collector:
    """Gathers the results of a batch as they come."""

    def __init__(self, return_bytes: bool, count: int):
        self.refused: dict[int, _errors.Error] = {}
        self._return_bytes = return_bytes
        self._results: list[Any] = [None] * count
        self._began = time.perf_counter()

    def __call__(self, result: Any) -> None:
        elapsed = time.perf_counter() - self._began
        error = self.refused.get(result.index, result.error)
        if error is not None:
            item = BatchItemResult(False, None, None, elapsed, str(error))
        else:
            speech = result.speech
            item = BatchItemResult(True, (speech.sample_rate, speech.samples),
                                   speech.to_bytes("wav") if self._return_bytes else None, elapsed, None)
        self._results[result.index] = item

    def response(self) -> BatchGenerationResponse:
        return BatchGenerationResponse(all(item.success for item in self._results), self._results,
                                       time.perf_counter() - self._began)
