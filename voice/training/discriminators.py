"""Discriminators for the adversarial part of the codec's training; they are not part of the voice."""
import torch
import torch.nn.functional as F
from torch import nn

PERIODS = (2, 3, 5, 7, 11)  # primes: the views overlap least
SPECTRUM_WINDOWS = (1024, 512, 256)
LEAKY_SLOPE = 0.1


def _layer_outputs(convolutions: nn.ModuleList, x: torch.Tensor) -> list[torch.Tensor]:
    """The output of each layer: the features to match, and last the decisions."""
    outputs = []
    last = len(convolutions) - 1
    for i, convolution in enumerate(convolutions):
        x = convolution(x)
        if i < last:
            x = F.leaky_relu(x, LEAKY_SLOPE)
        outputs.append(x)
    return outputs


class PeriodDiscriminator(nn.Module):
    """Judges a wave folded into rows of `period` samples."""

    CHANNELS = (1, 16, 32, 64, 128, 128)

    def __init__(self, period: int):
        super().__init__()
        self.period = period
        pairs = list(zip(self.CHANNELS, self.CHANNELS[1:]))
        last = len(pairs) - 1
        layers = [
            nn.Conv2d(inputs, outputs, (5, 1), (3, 1) if i < last else 1, (2, 0))
            for i, (inputs, outputs) in enumerate(pairs)
        ]
        self.convolutions = nn.ModuleList(layers + [nn.Conv2d(self.CHANNELS[-1], 1, (3, 1), 1, (1, 0))])

    def forward(self, waves: torch.Tensor) -> list[torch.Tensor]:
        """[batch, 1, samples] -> the outputs of all layers."""
        padded = F.pad(waves, (0, -waves.shape[-1] % self.period))
        return _layer_outputs(self.convolutions, padded.unflatten(-1, (-1, self.period)))


class SpectrumDiscriminator(nn.Module):
    """Judges the complex spectrum at one window size."""

    CHANNELS = 24

    def __init__(self, window: int):
        super().__init__()
        self.window_size = window
        self.register_buffer("window", torch.hann_window(window))
        ch = self.CHANNELS
        layers = [nn.Conv2d(2, ch, (3, 9), (1, 2), (1, 4))]
        layers += [nn.Conv2d(ch, ch, (3, 9), (1, 2), (1, 4)) for _ in range(3)]
        layers += [nn.Conv2d(ch, ch, 3, 1, 1), nn.Conv2d(ch, 1, 3, 1, 1)]
        self.convolutions = nn.ModuleList(layers)

    def forward(self, waves: torch.Tensor) -> list[torch.Tensor]:
        """[batch, 1, samples] -> the outputs of all layers."""
        with torch.autocast(waves.device.type, enabled=False):  # there is no bf16 Fourier transform
            spectrum = torch.stft(
                waves[:, 0].float(),
                self.window_size,
                self.window_size // 4,
                window=self.window,
                return_complex=True,
            )
            spectrum = spectrum / self.window.sum().sqrt()
            x = torch.stack([spectrum.real, spectrum.imag], 1).transpose(2, 3).contiguous()
        return _layer_outputs(self.convolutions, x)


class Discriminators(nn.Module):
    """All of them."""

    def __init__(self):
        super().__init__()
        by_period = [PeriodDiscriminator(period) for period in PERIODS]
        by_spectrum = [SpectrumDiscriminator(window) for window in SPECTRUM_WINDOWS]
        self.members = nn.ModuleList(by_period + by_spectrum)

    def forward(self, waves: torch.Tensor) -> list[list[torch.Tensor]]:
        """[batch, 1, samples] -> for each discriminator the outputs of its layers."""
        return [member(waves) for member in self.members]
