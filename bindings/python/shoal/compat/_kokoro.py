"""The older Kokoro pipeline and its batching queue, which are one thing here: the engine batches by itself."""
from __future__ import annotations

import os
from typing import Any, Sequence

from .. import _errors
from .._engine import Engine
from .._request import Request


class KokoroPipeline:
    """A Kokoro model that speaks phonemes. Voices may be mixed in a batch; a failed item fails alone, and is never
    answered with silence."""

    def __init__(self, model_dir: str | os.PathLike[str], device: str = "auto", *,
                 enable_kokoro_batching: bool = True, max_batch_size: int | None = None, max_wait_ms: int = 50,
                 min_wait_ms: int = 10, max_queue_size: int = 1000, request_timeout: float = 10.0):
        self._timeout = request_timeout  # seconds, of submit_for_batching
        self.shoal = Engine(model_dir, device=device, max_batch_size=max_batch_size if enable_kokoro_batching else 1,
                            max_wait_ms=max_wait_ms, min_wait_ms=min_wait_ms,
                            max_queue=max_queue_size)

    def from_phonemes(self, phonemes: str, voice: str = "", speed: float = 1.0) -> Any:
        """float32 [samples] at 24 kHz."""
        return self.shoal.speak("", phonemes=phonemes, voice=voice, speed=speed).samples

    def batch_from_phonemes_gpu(self, phoneme_list: Sequence[str], voice: str = "", speed: float = 1.0) -> list[Any]:
        """The same for many, in their order. Raises the first error that an item ended with."""
        items = [Request("", phonemes=phonemes) for phonemes in phoneme_list]
        return [result.get().samples for result in self.shoal.speak_batch(items, voice=voice, speed=speed)]

    async def submit_for_batching(self, phonemes: str, voice: str = "", speed: float = 1.0) -> Any:
        """The same for asyncio; requests that come together are batched."""
        try:
            speech = await self.shoal.speak_async("", phonemes=phonemes, voice=voice, speed=speed,
                                                  timeout=self._timeout)
        except _errors.ResourceExhausted as error:
            raise _errors.ResourceExhausted(f"batch queue is full: {error}") from None
        except _errors.DeadlineExceeded as error:
            raise _errors.DeadlineExceeded(f"batch processing timed out: {error}") from None
        return speech.samples

    def get_stats(self) -> dict[str, Any]:
        stats, health = self.shoal.stats(), self.shoal.health()
        return {
            "total_batches": stats["steps"], "total_requests": stats["requests"]["submitted"],
            "avg_batch_size": stats["batch_size"]["mean"] or 0.0, "current_queue_size": stats["queue"]["waiting"],
            "worker_running": health["state"] == "ready", "device": health["device"],
            "gpu_available": health["gpu_available"], "mps_available": False,
        }

    def close(self) -> None:
        self.shoal.close()

    def __enter__(self) -> KokoroPipeline:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()
