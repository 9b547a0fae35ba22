"""Objective measures: cepstral distance along the best alignment, median pitch, edit distance."""
import functools
from collections.abc import Sequence

import numpy as np

import training_path  # noqa: F401
from flite import SILENCE_ID
from mel_filters import TINY_POWER, mel_matrix
from pcm import SAMPLE_RATE

MEL_WINDOW = 768
MEL_BANDS = 80
MEL_HOP = 192  # 12 ms
MEL_FLOOR = 1e-4
CEPSTRA = 13  # c1 to c13; c0, the loudness, is left out

PITCH_HALF_WINDOW = 1024
PITCH_HOP = 512
PITCH_SILENCE = 1e-4  # mean square below which a frame is skipped
PITCH_VOICED = 0.5  # normalised autocorrelation above which a frame is voiced
PITCH_NEAR_BEST = 0.9  # the first peak this near the best one is taken, against octave errors


@functools.cache
def _cepstral_tools() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The window, scaled so that a full-scale sine has a magnitude near one, the mel filters, and the cosine
    transform [cepstra, bands]."""
    window = np.hanning(MEL_WINDOW + 1)[:-1]
    order = np.arange(1, CEPSTRA + 1)[:, None]
    transform = np.cos(np.pi / MEL_BANDS * (np.arange(MEL_BANDS)[None] + 0.5) * order) * (2 / MEL_BANDS)
    return window * (2 / window.sum()), mel_matrix(MEL_WINDOW, MEL_BANDS), transform


def mel_cepstra(wave: np.ndarray) -> np.ndarray:
    """A float wave [samples] -> [frames, CEPSTRA]."""
    window, filters, transform = _cepstral_tools()
    padded = np.pad(np.asarray(wave, np.float64), MEL_WINDOW // 2, mode="reflect")
    frames = np.lib.stride_tricks.sliding_window_view(padded, MEL_WINDOW)[::MEL_HOP]
    magnitude = np.sqrt(np.abs(np.fft.rfft(frames * window)) ** 2 + TINY_POWER)
    return np.log(np.maximum(magnitude @ filters.T, MEL_FLOOR)) @ transform.T


def mel_cepstral_distortion(wave: np.ndarray, other: np.ndarray) -> float:
    """In dB, the mean along the best time alignment of two waves [samples]."""
    a, b = mel_cepstra(wave), mel_cepstra(other)
    squared = (a**2).sum(1)[:, None] + (b**2).sum(1)[None] - 2 * a @ b.T
    return mean_along_best_path(np.sqrt(np.maximum(0, squared)) * (10 / np.log(10)) * 2**0.5)


def mean_along_best_path(distance: np.ndarray) -> float:
    """Dynamic time warping over [n, m]: the least sum from corner to corner, divided by the path's length."""
    n, m = distance.shape
    cost = np.full((n + 1, m + 1), np.inf)
    length = np.zeros((n + 1, m + 1))
    cost[0, 0] = 0
    for diagonal in range(2, n + m + 1):  # anti-diagonals, so that the inner loop is a vector operation
        i = np.arange(max(1, diagonal - m), min(n, diagonal - 1) + 1)
        j = diagonal - i
        before = np.stack([cost[i - 1, j - 1], cost[i - 1, j], cost[i, j - 1]])
        lengths = np.stack([length[i - 1, j - 1], length[i - 1, j], length[i, j - 1]])
        cost[i, j] = before.min(0) + distance[i - 1, j - 1]
        length[i, j] = lengths[before.argmin(0), np.arange(len(i))] + 1
    return cost[n, m] / length[n, m]


def _frame_pitch(frame: np.ndarray, window_correlation: np.ndarray, lags: np.ndarray) -> float | None:
    """The pitch in Hz of one frame by its autocorrelation; None if unvoiced or silent."""
    frame = frame - frame.mean()
    if (frame**2).mean() < PITCH_SILENCE:
        return None
    spectrum = np.fft.rfft(frame * np.hanning(len(frame)), 2 * len(frame))
    correlation = np.fft.irfft(abs(spectrum) ** 2)[:PITCH_HALF_WINDOW] / window_correlation
    correlation /= correlation[0] + 1e-12
    best = lags[correlation[lags].argmax()]
    if correlation[best] <= PITCH_VOICED:
        return None
    for lag in lags:
        value, after = correlation[lag], correlation[min(lag + 1, PITCH_HALF_WINDOW - 1)]
        if value > PITCH_NEAR_BEST * correlation[best] and value >= correlation[lag - 1] and value >= after:
            return SAMPLE_RATE / lag
    return SAMPLE_RATE / best


def median_pitch(wave: np.ndarray, lowest: int = 60, highest: int = 400) -> float:
    """In Hz, of the voiced frames of a float wave [samples]; 0 if there are none."""
    samples = np.asarray(wave, np.float64)
    size = 2 * PITCH_HALF_WINDOW
    window_spectrum = np.fft.rfft(np.hanning(size), 2 * size)
    window_correlation = np.fft.irfft(abs(window_spectrum) ** 2)[:PITCH_HALF_WINDOW]
    lags = np.arange(SAMPLE_RATE // highest, min(SAMPLE_RATE // lowest, PITCH_HALF_WINDOW - 1))
    starts = range(0, len(samples) - size, PITCH_HOP)
    pitches = [_frame_pitch(samples[start : start + size], window_correlation, lags) for start in starts]
    voiced = [pitch for pitch in pitches if pitch is not None]
    return float(np.median(voiced)) if voiced else 0.0


def edit_distance(reference: Sequence, other: Sequence) -> int:
    """The least number of insertions, deletions and replacements."""
    distance = np.arange(len(other) + 1)
    for i, expected in enumerate(reference):
        before = distance.copy()
        distance[0] = i + 1
        for j, got in enumerate(other):
            replaced = before[j] + (expected != got)
            distance[j + 1] = min(before[j + 1] + 1, distance[j] + 1, replaced)
    return int(distance[-1])


def collapse(labels: Sequence[int]) -> list[int]:
    """The phones of a sequence of labels: repetitions are one phone, silence is none."""
    return [
        int(phone)
        for i, phone in enumerate(labels)
        if phone != SILENCE_ID and (i == 0 or labels[i - 1] != phone)
    ]
