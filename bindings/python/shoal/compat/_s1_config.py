"""The settings of the older engine, and what each is here (docs/SETTINGS.md)."""
from __future__ import annotations

import os
from typing import Any

from .. import _errors

# Names that set nothing here, and why.
_WITHOUT_MEANING = {
    "compile_mode": "nothing is compiled at run time",
    "vram_clear_threshold_gb": "memory is planned once, when the engine starts",
    "vram_reserved_gb": "memory is planned once, when the engine starts: see kv_memory_mb of docs/SETTINGS.md",
    "warmup_timeout_seconds": "warming up is one short sentence",
    "reference_cache_memory_mb": "clips are kept by their number: reference_cache_max_entries",
}


class EngineConfig:
    """Refuses what has no meaning here with shoal.Unsupported, and unknown names with TypeError."""

    def __init__(self, checkpoint_path: str | os.PathLike[str] = "checkpoints/openaudio-s1-mini",
                 device: str = "auto", precision: Any = None, compile_model: bool = True,
                 compile_backend: str | None = None, enable_batching: bool = True, max_batch_size: int | None = None,
                 batch_timeout_ms: int = 0, batch_grouping: bool = True, vram_clear_on_oom_only: bool = True,
                 request_timeout_seconds: float = 60.0, kv_cache_max_entries: int = 100,
                 reference_cache_max_entries: int = 1000, default_max_new_tokens: int = 2048,
                 default_temperature: float = 0.7, default_top_p: float = 0.8,
                 default_repetition_penalty: float = 1.1, default_chunk_length: int = 200, **others: Any):
        for name in others:
            if name in _WITHOUT_MEANING:
                raise _errors.Unsupported(f"{name}: has no meaning here: {_WITHOUT_MEANING[name]}")
            raise TypeError(f"EngineConfig has no setting {name}")
        if compile_backend not in (None, "", "auto"):
            raise _errors.Unsupported(f"compile_backend: there is nothing to compile at run time, got "
                                      f"{compile_backend!r}")
        if device == "mps":
            raise _errors.Unsupported("device: Apple GPUs are not supported; use cpu")
        if not vram_clear_on_oom_only:
            raise _errors.Unsupported("vram_clear_on_oom_only: memory is never cleared between requests")
        self.checkpoint_path = checkpoint_path
        self.device = device
        self.precision = precision
        self.compile_model = compile_model
        self.enable_batching = enable_batching
        self.max_batch_size = max_batch_size
        self.batch_timeout_ms = batch_timeout_ms
        self.batch_grouping = batch_grouping
        self.request_timeout_seconds = request_timeout_seconds
        self.kv_cache_max_entries = kv_cache_max_entries
        self.reference_cache_max_entries = reference_cache_max_entries
        self.default_max_new_tokens = default_max_new_tokens
        self.default_temperature = default_temperature
        self.default_top_p = default_top_p
        self.default_repetition_penalty = default_repetition_penalty
        self.default_chunk_length = default_chunk_length

    def settings(self) -> dict[str, Any]:
        """The keywords of shoal.Engine."""
        precision = str(self.precision).rsplit(".", 1)[-1] if self.precision is not None else None  # torch.float16
        return {
            "device": self.device, "precision": precision, "cuda_graphs": self.compile_model,
            "max_batch_size": self.max_batch_size if self.enable_batching else 1,
            "batch_timeout_ms": self.batch_timeout_ms, "batch_grouping": self.batch_grouping,
            "request_timeout_s": max(1, round(self.request_timeout_seconds)),
            "kv_cache_size": self.kv_cache_max_entries, "reference_cache_size": self.reference_cache_max_entries,
        }
