"""Mel spectra: the codec's reconstruction loss and the features of the phone recogniser."""
import torch
from torch import nn

from mel_filters import TINY_POWER, mel_matrix

# The codec's loss compares log mels at these (window in samples, mel bands).
LOSS_RESOLUTIONS = ((64, 5), (128, 10), (256, 20), (512, 40), (1024, 80), (2048, 160))
LOSS_FLOOR = 5e-4  # lower, the digital silence around utterances would own the gradient


class LogMel(nn.Module):
    """log10 of the mel magnitudes of a Hann-windowed spectrum; a full-scale sine has a magnitude near one.

    A hard floor clamps the magnitudes; a soft one is added to them, which bounds the gradient in silence.
    """

    def __init__(self, window: int, bands: int, hop: int, floor: float, soft_floor: bool = False):
        super().__init__()
        self.window_size, self.hop, self.floor, self.soft_floor = window, hop, floor, soft_floor
        self.register_buffer("window", torch.hann_window(window), persistent=False)
        self.register_buffer("filters", torch.from_numpy(mel_matrix(window, bands)), persistent=False)

    def forward(self, waves: torch.Tensor) -> torch.Tensor:
        """[batch, samples] -> [batch, bands, 1 + samples/hop]."""
        spectrum = torch.stft(waves, self.window_size, self.hop, window=self.window, return_complex=True)
        magnitude = (spectrum.real.pow(2) + spectrum.imag.pow(2) + TINY_POWER).sqrt() * (
            2 / self.window.sum()
        )
        mel = self.filters @ magnitude
        return (mel + self.floor if self.soft_floor else mel.clamp(min=self.floor)).log10()


class MultiScaleMelLoss(nn.Module):
    """The sum over several resolutions of the mean absolute difference of log mels."""

    def __init__(self):
        super().__init__()
        self.mels = nn.ModuleList(
            LogMel(window, bands, window // 4, LOSS_FLOOR, soft_floor=True)
            for window, bands in LOSS_RESOLUTIONS
        )

    def forward(self, waves: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """[batch, samples] twice -> a scalar."""
        return sum((mel(waves) - mel(targets)).abs().mean() for mel in self.mels)
