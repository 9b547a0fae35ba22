"""How far one sound is from another of the same length: sound_distance.py A.wav B.wav [C.wav D.wav ...].

Of each pair: the log-spectral distance in dB (80 mel bands every 5 ms, 60 dB below the loudest is silence: as
tests/parity/spectral_distance.h) as a mean and at worst, the mel-cepstral distortion, the largest difference of
two samples as a share of the largest sample, and the ratio of signal to difference.
"""
import sys
import wave as wave_files

import numpy as np

import training_path  # noqa: F401
from inputs import InputError, run_tool
from measures import mel_cepstral_distortion

WINDOW, HOP, BANDS = 512, 120, 80
FLOOR = 1e-6  # of power


def read(path: str) -> tuple[np.ndarray, int]:
    try:
        with wave_files.open(path) as file:
            return np.frombuffer(file.readframes(file.getnframes()), "<i2") / 32768, file.getframerate()
    except (OSError, EOFError, wave_files.Error) as error:
        raise InputError(f"{path}: {error}") from error


def _bands(rate: int) -> np.ndarray:
    """[bins, bands]: each bin's power goes to the two bands around it, by nearness."""
    def mel(hz: np.ndarray) -> np.ndarray:
        return 2595 * np.log10(1 + hz / 700)

    bins = np.arange(WINDOW // 2 + 1)
    at = mel(bins * rate / WINDOW) / (mel(np.float64(rate / 2)) / (BANDS - 1))
    below = np.minimum(at.astype(int), BANDS - 2)
    weights = np.zeros((len(bins), BANDS))
    weights[bins, below] = 1 - (at - below)
    weights[bins, below + 1] = at - below
    return weights


def spectrogram(sound: np.ndarray, rate: int) -> np.ndarray:
    """[frames, bands] of power."""
    hann = np.hanning(WINDOW + 1)[:-1]
    frames = np.lib.stride_tricks.sliding_window_view(sound, WINDOW)[::HOP]
    return np.abs(np.fft.rfft(frames * hann)) ** 2 @ _bands(rate)


def spectral_distances(sound: np.ndarray, other: np.ndarray, rate: int) -> np.ndarray:
    """In dB, of each frame."""
    got, wanted = spectrogram(sound, rate), spectrogram(other, rate)
    floor = wanted.max() * FLOOR
    return np.sqrt(((10 * np.log10((got + floor) / (wanted + floor))) ** 2).mean(1))


def main() -> None:
    if len(sys.argv) < 3 or len(sys.argv) % 2 == 0:
        raise InputError("expected pairs of WAV files")
    for first, second in zip(sys.argv[1::2], sys.argv[2::2]):
        (sound, rate), (other, other_rate) = read(first), read(second)
        if rate != other_rate or len(sound) != len(other) or len(sound) < WINDOW:
            raise InputError(f"{first}, {second}: expected two sounds of one length and rate")
        spectral = spectral_distances(sound, other, rate)
        difference = sound - other
        ratio_db = 10 * np.log10((other**2).sum() / max(1e-30, (difference**2).sum()))
        print(f"{first} {second}: spectral {spectral.mean():.3f} dB, at worst {spectral.max():.2f}; cepstral "
              f"{mel_cepstral_distortion(sound, other):.3f} dB; samples {100 * abs(difference).max() / abs(other).max():.2f} % "
              f"of the largest; signal to difference {ratio_db:.1f} dB")


if __name__ == "__main__":
    run_tool(main)
