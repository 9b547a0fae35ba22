"""The transformer block that the DualAR model and the codec share.

Parameter names are those of the S1-mini checkpoint layout. B: batch, T: positions, H: heads, D: head size.
"""
import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

LAYER_SCALE_START = 0.1


@dataclass(frozen=True)
class BlockShape:
    """Sizes and switches of a block."""

    dim: int
    heads: int
    kv_heads: int
    head_dim: int
    hidden: int  # of the feed-forward part
    norm_eps: float
    qk_norm: bool = False
    qkv_bias: bool = False
    output_bias: bool = False
    layer_scale: bool = False


class RMSNorm(nn.Module):
    """Division by the root mean square, in fp32, then a weight for each channel."""

    def __init__(self, dim: int, eps: float):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = x.float()
        normed = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)
        return normed.to(x.dtype) * self.weight.to(x.dtype)


def rope_table(positions: int, head_dim: int, base: float) -> torch.Tensor:
    """Cosine and sine for each position and pair, [positions, head_dim/2, 2]; bf16 values, as in S1-mini."""
    frequency = base ** -(torch.arange(0, head_dim, 2).float() / head_dim)
    angle = torch.outer(torch.arange(positions).float(), frequency)
    return torch.stack([angle.cos(), angle.sin()], -1).bfloat16().float()


def rotate(x: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    """Rotary positions: x [B, T, H, D], table [T, D/2, 2]; neighbouring elements form a pair."""
    first, second = x.float().unflatten(-1, (-1, 2)).unbind(-1)
    cosine, sine = table[:, None, :, 0], table[:, None, :, 1]
    rotated = torch.stack([first * cosine - second * sine, second * cosine + first * sine], -1)
    return rotated.flatten(-2).to(x.dtype)


def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
    """Attention over [B, H, T, D]; k and v may have fewer heads. mask: None = causal, else True = visible."""
    if k.shape[1] != q.shape[1]:
        k, v = (t.repeat_interleave(q.shape[1] // k.shape[1], 1) for t in (k, v))
    if hasattr(F, "scaled_dot_product_attention"):  # PyTorch 2
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=mask is None)
    if mask is None:
        mask = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool, device=q.device).tril()
    scores = (q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])).masked_fill(~mask, float("-inf"))
    return scores.softmax(-1) @ v


class Attention(nn.Module):
    """Grouped-query attention with rotary positions."""

    def __init__(self, shape: BlockShape):
        super().__init__()
        self.heads, self.kv_heads, self.head_dim = shape.heads, shape.kv_heads, shape.head_dim
        projected = (shape.heads + 2 * shape.kv_heads) * shape.head_dim
        self.wqkv = nn.Linear(shape.dim, projected, bias=shape.qkv_bias)
        self.wo = nn.Linear(shape.heads * shape.head_dim, shape.dim, bias=shape.output_bias)
        self.qk_norm = shape.qk_norm
        if self.qk_norm:
            self.q_norm = RMSNorm(shape.head_dim, shape.norm_eps)
            self.k_norm = RMSNorm(shape.head_dim, shape.norm_eps)

    def forward(
        self,
        x: torch.Tensor,
        rope: torch.Tensor,
        mask: torch.Tensor | None = None,
        cache: torch.Tensor | None = None,
        position: int = 0,
    ) -> torch.Tensor:
        """x [B, T, dim]; cache [2, B, kv_heads, max positions, D] takes keys and values from `position`."""
        batch, length, _ = x.shape
        heads = self.wqkv(x).view(batch, length, -1, self.head_dim)
        q, k, v = heads.split([self.heads, self.kv_heads, self.kv_heads], 2)
        if self.qk_norm:
            q, k = self.q_norm(q), self.k_norm(k)
        q, k = rotate(q, rope), rotate(k, rope)
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
        if cache is not None:
            end = position + length
            cache[0][:, :, position:end] = k
            cache[1][:, :, position:end] = v
            k, v = cache[0][:, :, :end], cache[1][:, :, :end]
        return self.wo(attend(q, k, v, mask).transpose(1, 2).reshape(batch, length, -1))


class FeedForward(nn.Module):
    """SwiGLU."""

    def __init__(self, dim: int, hidden: int):
        super().__init__()
        self.w1 = nn.Linear(dim, hidden, bias=False)
        self.w3 = nn.Linear(dim, hidden, bias=False)
        self.w2 = nn.Linear(hidden, dim, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class LayerScale(nn.Module):
    """A learned factor for each channel of a residual branch."""

    def __init__(self, dim: int):
        super().__init__()
        self.gamma = nn.Parameter(torch.full((dim,), LAYER_SCALE_START))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.gamma.to(x.dtype)


class Block(nn.Module):
    """Pre-norm attention and feed-forward, each with a residual connection."""

    def __init__(self, shape: BlockShape):
        super().__init__()
        self.attention = Attention(shape)
        self.feed_forward = FeedForward(shape.dim, shape.hidden)
        self.attention_norm = RMSNorm(shape.dim, shape.norm_eps)
        self.ffn_norm = RMSNorm(shape.dim, shape.norm_eps)
        self.layer_scale = shape.layer_scale
        if self.layer_scale:
            self.attention_layer_scale = LayerScale(shape.dim)
            self.ffn_layer_scale = LayerScale(shape.dim)

    def forward(
        self,
        x: torch.Tensor,
        rope: torch.Tensor,
        mask: torch.Tensor | None = None,
        cache: torch.Tensor | None = None,
        position: int = 0,
    ) -> torch.Tensor:
        """[B, T, dim] -> the same; for mask and cache see Attention."""
        attended = self.attention(self.attention_norm(x), rope, mask, cache, position)
        x = x + (self.attention_layer_scale(attended) if self.layer_scale else attended)
        transformed = self.feed_forward(self.ffn_norm(x))
        return x + (self.ffn_layer_scale(transformed) if self.layer_scale else transformed)
