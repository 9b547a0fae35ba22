"""The DualAR text-to-code transformer: a slow model over positions, a fast one over the codebooks of a frame.

Parameter names are those of the S1-mini checkpoint layout. A token row has 1 + K numbers: a text or
semantic token and K codes (zeros unless the token is semantic). B: batch, T: positions, K: codebooks.
"""
import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from transformer import Block, BlockShape, RMSNorm, rope_table


def _slow_shape(config: dict[str, Any]) -> BlockShape:
    return BlockShape(
        dim=config["dim"],
        heads=config["n_head"],
        kv_heads=config["n_local_heads"],
        head_dim=config["head_dim"],
        hidden=config["intermediate_size"],
        norm_eps=config["norm_eps"],
        qk_norm=config["attention_qk_norm"],
        qkv_bias=config["attention_qkv_bias"],
        output_bias=config["attention_o_bias"],
    )


def _fast_shape(config: dict[str, Any]) -> BlockShape:
    return BlockShape(
        dim=config["fast_dim"],
        heads=config["fast_n_head"],
        kv_heads=config["fast_n_local_heads"],
        head_dim=config["fast_head_dim"],
        hidden=config["fast_intermediate_size"],
        norm_eps=config["norm_eps"],
        qk_norm=config["fast_attention_qk_norm"],
        qkv_bias=config["fast_attention_qkv_bias"],
        output_bias=config["fast_attention_o_bias"],
    )


class DualAR(nn.Module):
    """Built from the values of config.json; semantic_begin is the id of the first semantic token."""

    def __init__(self, config: dict[str, Any], semantic_begin: int):
        super().__init__()
        dim, fast_dim, eps = config["dim"], config["fast_dim"], config["norm_eps"]
        self.config = config
        self.codebooks = config["num_codebooks"]
        self.codebook_size = config["codebook_size"]
        self.semantic_begin = semantic_begin
        self.embeddings = nn.Embedding(config["vocab_size"], dim)
        self.codebook_embeddings = nn.Embedding(self.codebook_size * self.codebooks, dim)
        self.layers = nn.ModuleList(Block(_slow_shape(config)) for _ in range(config["n_layer"]))
        self.norm = RMSNorm(dim, eps)
        self.fast_project_in = nn.Linear(dim, fast_dim) if fast_dim != dim else nn.Identity()
        self.fast_embeddings = nn.Embedding(self.codebook_size, fast_dim)
        self.fast_layers = nn.ModuleList(Block(_fast_shape(config)) for _ in range(config["n_fast_layer"]))
        self.fast_norm = RMSNorm(fast_dim, eps)
        self.fast_output = nn.Linear(fast_dim, self.codebook_size, bias=False)
        rope = rope_table(config["max_seq_len"], config["head_dim"], config["rope_base"])
        fast_rope = rope_table(self.codebooks, config["fast_head_dim"], config["rope_base"])
        self.register_buffer("rope", rope, persistent=False)
        self.register_buffer("fast_rope", fast_rope, persistent=False)
        self._initialise(config["initializer_range"])

    def _initialise(self, deviation: float) -> None:
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=deviation)
            if isinstance(module, nn.Linear) and module.bias is not None:
                nn.init.zeros_(module.bias)

    def is_semantic(self, tokens: torch.Tensor) -> torch.Tensor:
        """Which tokens stand for a frame of speech."""
        return (tokens >= self.semantic_begin) & (tokens < self.semantic_begin + self.codebook_size)

    def embed(self, rows: torch.Tensor) -> torch.Tensor:
        """Token rows [B, T, 1+K] -> [B, T, dim]; for a frame the scaled sum over token and codes."""
        is_frame = self.is_semantic(rows[..., 0]).unsqueeze(-1)
        offsets = torch.arange(self.codebooks, device=rows.device) * self.codebook_size
        codes = self.codebook_embeddings(rows[..., 1:] + offsets).sum(-2)
        tokens = self.embeddings(rows[..., 0])
        scale = 1 / math.sqrt(self.codebooks + 1) if self.config["scale_codebook_embeddings"] else 1.0
        return torch.where(is_frame, (tokens + codes) * scale, tokens)

    def slow(
        self,
        rows: torch.Tensor,
        mask: torch.Tensor | None = None,
        cache: list[torch.Tensor] | None = None,
        position: int = 0,
    ) -> torch.Tensor:
        """Token rows [B, T, 1+K] that begin at `position` -> hidden states [B, T, dim]."""
        x, rope = self.embed(rows), self.rope[position : position + rows.shape[1]]
        for i, layer in enumerate(self.layers):
            x = layer(x, rope, mask, None if cache is None else cache[i], position)
        return x

    def head(self, hidden: torch.Tensor) -> torch.Tensor:
        """Hidden states -> token logits; the output matrix is the input embedding."""
        return F.linear(self.norm(hidden), self.embeddings.weight.to(hidden.dtype))

    def fast(self, hidden: torch.Tensor, codes: torch.Tensor) -> torch.Tensor:
        """hidden [N, dim] at the frames, codes [N, n] -> logits [N, n+1, size] of codebooks 0..n."""
        start = self.fast_project_in(hidden)[:, None]
        x = torch.cat([start, self.fast_embeddings(codes).to(hidden.dtype)], 1)
        for layer in self.fast_layers:
            x = layer(x, self.fast_rope[: x.shape[1]])
        return self.fast_output(self.fast_norm(x))
