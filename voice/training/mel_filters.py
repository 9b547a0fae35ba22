"""The mel filters of the losses and of the measures, without PyTorch."""
import numpy as np

from pcm import SAMPLE_RATE

TINY_POWER = 1e-14  # keeps the gradient of the square root finite where the spectrum is zero


def mel_matrix(window: int, bands: int) -> np.ndarray:
    """Triangular mel filters from 0 Hz to half the sample rate, float32 [bands, window/2 + 1]."""
    top_mel = 2595 * np.log10(1 + SAMPLE_RATE / 2 / 700)
    edges = 700 * (10 ** (np.linspace(0.0, top_mel, bands + 2) / 2595) - 1)
    hertz = np.linspace(0, SAMPLE_RATE / 2, window // 2 + 1)
    rising = (hertz[None] - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    falling = (edges[2:, None] - hertz[None]) / (edges[2:] - edges[1:-1])[:, None]
    return np.maximum(0, np.minimum(rising, falling)).astype(np.float32)
