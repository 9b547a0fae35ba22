"""Convolutions and the Snake activation of the codec; parameter names are those of the S1-mini layout.

All convolutions are causal. While training their weights are plain; checkpoints.py converts to and from the
weight-normed form on disk. On a GPU `use_fast_kernels` changes how, not what, they compute.
"""
import torch
import torch.nn.functional as F
from torch import nn

SNAKE_EPSILON = 1e-9  # keeps the reciprocal finite


def _snake(x: torch.Tensor, alpha: torch.Tensor) -> torch.Tensor:
    """x + sin^2(alpha x) / alpha, in fp32."""
    wide, alpha = x.float(), alpha.float()
    return (wide + (alpha + SNAKE_EPSILON).reciprocal() * torch.sin(alpha * wide).pow(2)).to(x.dtype)


def _snake_gradient(
    gradient: torch.Tensor, x: torch.Tensor, alpha: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """The gradients of x and, not yet summed over batch and time, of alpha."""
    wide, upper, sine = x.float(), gradient.float(), torch.sin(alpha * x.float())
    of_x = upper * (1 + torch.sin(2 * alpha * wide))
    of_alpha = upper * (wide * torch.sin(2 * alpha * wide) - sine * sine / alpha) / alpha
    return of_x.to(x.dtype), of_alpha.to(x.dtype)


class _FusedSnake(torch.autograd.Function):
    """Two fused kernels, compiled once for all shapes."""

    forward_kernel = None
    backward_kernel = None

    @staticmethod
    def forward(ctx, x, alpha):
        ctx.save_for_backward(x, alpha)
        return _FusedSnake.forward_kernel(x, alpha.detach())

    @staticmethod
    def backward(ctx, gradient):
        x, alpha = ctx.saved_tensors
        of_x, of_alpha = _FusedSnake.backward_kernel(gradient, x, alpha.detach())
        return of_x, of_alpha.sum((0, 2), keepdim=True, dtype=torch.float32)


class _Kernels:
    """Which kernels the layers of this module use; one choice for the process."""

    fast = False


def use_fast_kernels() -> None:
    """Channels-last convolutions and a fused Snake; needs a GPU and PyTorch 2."""
    torch._dynamo.config.recompile_limit = (
        64  # one compilation for each kind of shape and dtype, not the default 8
    )
    _FusedSnake.forward_kernel = torch.compile(_snake, dynamic=True)
    _FusedSnake.backward_kernel = torch.compile(_snake_gradient, dynamic=True)
    _Kernels.fast = True


def use_plain_kernels() -> None:
    """The default; works everywhere."""
    _Kernels.fast = False


class Snake(nn.Module):
    """The periodic activation, with one alpha for each channel."""

    def __init__(self, channels: int):
        super().__init__()
        self.alpha = nn.Parameter(torch.ones(1, channels, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return _FusedSnake.apply(x, self.alpha) if _Kernels.fast else _snake(x, self.alpha)


class Conv(nn.Module):
    """Causal convolution: all the padding is on the left."""

    def __init__(
        self,
        inputs: int,
        outputs: int,
        kernel: int,
        dilation: int = 1,
        stride: int = 1,
        groups: int = 1,
        weight_norm: bool = True,
    ):
        super().__init__()
        self.conv = nn.Conv1d(inputs, outputs, kernel, stride, dilation=dilation, groups=groups)
        self.padding = (kernel - 1) * dilation + 1 - stride
        self.weight_norm = weight_norm

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[B, inputs, T] -> [B, outputs, T/stride]."""
        conv = self.conv
        if not _Kernels.fast:
            return conv(F.pad(x, (self.padding, 0)))
        image, weight = F.pad(x.unsqueeze(2), (self.padding, 0)), conv.weight.unsqueeze(2)
        stride, dilation = (1, conv.stride[0]), (1, conv.dilation[0])
        return F.conv2d(image, weight, conv.bias, stride, 0, dilation, conv.groups).squeeze(2)


class ConvTranspose(nn.Module):
    """Causal transposed convolution: the tail is cut."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int, weight_norm: bool = True):
        super().__init__()
        self.conv = nn.ConvTranspose1d(inputs, outputs, kernel, stride)
        self.weight_norm = weight_norm

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[B, inputs, T] -> [B, outputs, T*stride]."""
        conv, length = self.conv, x.shape[-1] * self.conv.stride[0]
        if not _Kernels.fast:
            return conv(x)[..., :length]
        stride = (1, conv.stride[0])
        image = F.conv_transpose2d(x.unsqueeze(2), conv.weight.unsqueeze(2), conv.bias, stride)
        return image.squeeze(2)[..., :length]


class ResidualUnit(nn.Module):
    """Two convolutions, the first one dilated, beside the identity."""

    def __init__(self, channels: int, dilation: int):
        super().__init__()
        self.block = nn.Sequential(
            Snake(channels),
            Conv(channels, channels, 7, dilation),
            Snake(channels),
            Conv(channels, channels, 1),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.block(x)


def residual_units(channels: int) -> list[ResidualUnit]:
    """The three units of each stage of the encoder and the decoder."""
    return [ResidualUnit(channels, dilation) for dilation in (1, 3, 9)]


class Chain(nn.Module):
    """Layers in sequence, under an attribute that the checkpoint layout names."""

    def __init__(self, *layers: nn.Module, name: str = "block"):
        super().__init__()
        self.name = name
        setattr(self, name, nn.Sequential(*layers))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return getattr(self, self.name)(x)


class ConvNeXt(nn.Module):
    """A depthwise convolution and a pointwise feed-forward part beside the identity."""

    def __init__(self, dim: int):
        super().__init__()
        self.dwconv = Conv(dim, dim, 7, groups=dim, weight_norm=False)
        self.norm = nn.LayerNorm(dim, eps=1e-6)
        self.pwconv1 = nn.Linear(dim, 4 * dim)
        self.pwconv2 = nn.Linear(4 * dim, dim)
        self.gamma = nn.Parameter(torch.full((dim,), 0.1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[B, dim, T] -> the same."""
        y = self.norm(self.dwconv(x).transpose(1, 2))
        y = self.pwconv2(F.gelu(self.pwconv1(y)))
        return x + (self.gamma.to(y.dtype) * y).transpose(1, 2)
