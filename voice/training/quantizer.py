"""The codec's quantiser: latents at the frame rate -> one semantic and several residual codes, and back.

B: batch, C: latent channels, T: time steps of the encoder, N: frames, K: codebooks.
"""
import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import nn

from codec_layers import Conv, ConvNeXt, ConvTranspose
from transformer import Block, BlockShape, RMSNorm, rope_table


class WindowTransformer(nn.Module):
    """A causal transformer whose positions see the last q_window ones; [B, C, N] -> [B, C, N]."""

    def __init__(self, dim: int, config: dict[str, Any]):
        super().__init__()
        self.window = config["q_window"]
        shape = BlockShape(
            dim=dim,
            heads=config["q_heads"],
            kv_heads=config["q_heads"],
            head_dim=config["q_head_dim"],
            hidden=config["q_inter"],
            norm_eps=config["norm_eps"],
            layer_scale=True,
        )
        self.layers = nn.ModuleList(Block(shape) for _ in range(config["q_layers"]))
        self.norm = RMSNorm(dim, config["norm_eps"])
        rope = rope_table(config["q_block_size"], config["q_head_dim"], config["rope_base"])
        self.register_buffer("rope", rope, persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.transpose(1, 2)
        position = torch.arange(x.shape[1], device=x.device)
        distance = position[:, None] - position[None]
        for layer in self.layers:
            x = layer(x, self.rope[: x.shape[1]], (distance >= 0) & (distance < self.window))
        return self.norm(x).transpose(1, 2)


@contextlib.contextmanager
def no_tf32() -> Iterator[None]:
    """Products in full fp32: with TF32, rounding decides between near entries and codebooks collapse."""
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    before = matmul.allow_tf32, cudnn.allow_tf32
    matmul.allow_tf32 = cudnn.allow_tf32 = False
    try:
        yield
    finally:
        matmul.allow_tf32, cudnn.allow_tf32 = before


class VectorQuantizerOutput(NamedTuple):
    """What one codebook makes of its input [B, C, N]."""

    quantized: torch.Tensor  # [B, C, N]
    codes: torch.Tensor  # [B, N]
    commitment_loss: torch.Tensor  # [B]
    codebook_loss: torch.Tensor  # [B]
    latents: torch.Tensor  # [B, codebook dim, N], before rounding


class VectorQuantizer(nn.Module):
    """One codebook: the nearest entry by cosine, with a straight-through gradient."""

    def __init__(self, dim: int, size: int, codebook_dim: int):
        super().__init__()
        self.in_proj = nn.Conv1d(dim, codebook_dim, 1)
        self.out_proj = nn.Conv1d(codebook_dim, dim, 1)
        self.codebook = nn.Embedding(size, codebook_dim)
        self.rounding: float | torch.Tensor = 1.0  # from 0 (the input passes) to 1 (the entry); see Quantizer

    def lookup(self, codes: torch.Tensor) -> torch.Tensor:
        """[B, N] -> [B, C, N]."""
        return self.out_proj(self.codebook(codes).transpose(1, 2))

    def forward(self, x: torch.Tensor) -> VectorQuantizerOutput:
        latents = self.in_proj(x)
        directions = F.normalize(latents, dim=1).transpose(1, 2)
        codes = (directions @ F.normalize(self.codebook.weight, dim=1).t()).argmax(-1)
        entries = self.codebook(codes).transpose(1, 2)
        commitment = (latents - entries.detach()).pow(2).mean((1, 2))
        codebook = (entries - latents.detach()).pow(2).mean((1, 2))
        rounded = latents + self.rounding * (entries - latents).detach()
        return VectorQuantizerOutput(
            self.out_proj(rounded), codes, commitment * self.rounding, codebook, latents
        )


class ResidualQuantizer(nn.Module):
    """Codebooks of which each quantises what the ones before it left."""

    def __init__(self, dim: int, count: int, size: int, codebook_dim: int):
        super().__init__()
        self.quantizers = nn.ModuleList(VectorQuantizer(dim, size, codebook_dim) for _ in range(count))

    def lookup(self, codes: torch.Tensor) -> torch.Tensor:
        """[B, count, N] -> [B, C, N]."""
        return sum(quantizer.lookup(codes[:, i]) for i, quantizer in enumerate(self.quantizers))


class QuantizerOutput(NamedTuple):
    """What all codebooks make of the encoder's output."""

    quantized: torch.Tensor  # [B, C, N]
    codes: torch.Tensor  # [B, K, N]
    commitment_loss: torch.Tensor  # a scalar
    codebook_loss: torch.Tensor  # a scalar
    semantic: torch.Tensor  # [B, C, N], the first codebook's part
    latents: list[torch.Tensor]  # K times [B, codebook dim, N]


class Quantizer(nn.Module):
    """Downsampling, a transformer, the codebooks; then a transformer and upsampling."""

    def __init__(self, config: dict[str, Any]):
        super().__init__()
        dim, codebook_dim = config["latent_dim"], config["codebook_dim"]
        factors = config["downsample_factor"]
        self.semantic_quantizer = ResidualQuantizer(dim, 1, config["semantic_codebook_size"], codebook_dim)
        self.quantizer = ResidualQuantizer(dim, config["n_codebooks"], config["codebook_size"], codebook_dim)
        self.downsample = nn.Sequential(
            *[
                nn.Sequential(Conv(dim, dim, factor, stride=factor, weight_norm=False), ConvNeXt(dim))
                for factor in factors
            ]
        )
        self.upsample = nn.Sequential(
            *[
                nn.Sequential(ConvTranspose(dim, dim, factor, factor, weight_norm=False), ConvNeXt(dim))
                for factor in factors[::-1]
            ]
        )
        self.pre_module = WindowTransformer(dim, config)
        self.post_module = WindowTransformer(dim, config)

    def codebooks(self) -> list[VectorQuantizer]:
        """The semantic codebook, then the residual ones."""
        return [*self.semantic_quantizer.quantizers, *self.quantizer.quantizers]

    def set_rounding(self, rounding: float | torch.Tensor) -> None:
        """Training starts with 0 (no rounding) and ends with 1; a tensor may be changed in place later."""
        for codebook in self.codebooks():
            codebook.rounding = rounding

    def forward(self, z: torch.Tensor, active: torch.Tensor | None = None) -> QuantizerOutput:
        """z [B, C, T]; active [B]: how many residual codebooks each item uses (for training), None = all."""
        z = self.pre_module(self.downsample(z)).float()
        with torch.autocast(z.device.type, enabled=False), no_tf32():
            first = self.semantic_quantizer.quantizers[0](z)
            commitment, codebook = first.commitment_loss.mean(), first.codebook_loss.mean()
            codes, latents = [first.codes], [first.latents]
            total, residual = first.quantized, z - first.quantized
            for i, quantizer in enumerate(self.quantizer.quantizers):
                out = quantizer(residual)
                if active is None:
                    used = torch.ones_like(out.commitment_loss)
                else:
                    used = (i < active).float()
                commitment = commitment + (out.commitment_loss * used).mean()
                codebook = codebook + (out.codebook_loss * used).mean()
                total = total + out.quantized * used[:, None, None]
                residual = residual - out.quantized
                codes.append(out.codes)
                latents.append(out.latents)
        return QuantizerOutput(total, torch.stack(codes, 1), commitment, codebook, first.quantized, latents)

    def expand(self, quantized: torch.Tensor) -> torch.Tensor:
        """[B, C, N] -> the decoder's input [B, C, T]."""
        return self.upsample(self.post_module(quantized))

    def decode(self, codes: torch.Tensor) -> torch.Tensor:
        """[B, K, N] -> the decoder's input [B, C, T]."""
        semantic = self.semantic_quantizer.lookup(codes[:, :1])
        return self.expand(semantic + self.quantizer.lookup(codes[:, 1:]))
