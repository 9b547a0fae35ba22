"""Draws what evaluate.py left: mel spectrograms of a sentence by teacher, codec and voice.

One under the other, as a PNG of 16 greys: time from left to right, 10 ms a column, mel bands from low to
high, 80 dB from white to black.
"""
import argparse
import struct
import zlib
from pathlib import Path

import numpy as np

import training_path  # noqa: F401
from inputs import InputError, require_file, run_tool
from mel_filters import TINY_POWER, mel_matrix
from pcm import INT16_SCALE, SAMPLE_RATE

WINDOW = 640
HOP = SAMPLE_RATE // 100
BANDS = 72
RANGE_DB = 80.0
GREYS = 16  # 4 bits
GAP = 4  # white rows between two pictures


def spectrogram(wave: np.ndarray) -> np.ndarray:
    """A float wave [samples] -> dB below its loudest band [BANDS, columns], clipped, the highest first."""
    padded = np.pad(np.asarray(wave, np.float64), WINDOW // 2, mode="reflect")
    frames = np.lib.stride_tricks.sliding_window_view(padded, WINDOW)[::HOP] * np.hanning(WINDOW + 1)[:-1]
    power = np.abs(np.fft.rfft(frames)) ** 2 + TINY_POWER
    decibels = 20 * np.log10(np.sqrt(power) @ mel_matrix(WINDOW, BANDS).T + 1e-12)
    return np.clip(decibels.max() - decibels, 0, RANGE_DB).T[::-1]


def stacked(pictures: list[np.ndarray]) -> np.ndarray:
    """Greys 0 (black) to GREYS - 1, as wide as the widest."""
    width = max(picture.shape[1] for picture in pictures)
    rows = []
    for picture in pictures:
        greys = np.full((BANDS, width), GREYS - 1, np.uint8)
        greys[:, : picture.shape[1]] = np.rint(picture / RANGE_DB * (GREYS - 1))
        rows += [greys, np.full((GAP, width), GREYS - 1, np.uint8)]
    return np.concatenate(rows[:-1])


def write_png(path: Path, greys: np.ndarray) -> None:
    """PNG (ISO/IEC 15948) of 4 bits a pixel."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    height, width = greys.shape
    even = np.pad(greys, ((0, 0), (0, width % 2)))
    packed = even[:, ::2] << 4 | even[:, 1::2]
    no_filter = np.zeros((height, 1), np.uint8)  # a byte before each line
    lines = np.concatenate([no_filter, packed], 1)
    header = struct.pack(">IIBBBBB", width, height, 4, 0, 0, 0, 0)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines.tobytes(), 9)) + chunk(b"IEND", b"")
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + body)


def _wave(folder: Path, way: str, sentence: int) -> np.ndarray:
    path = require_file(folder / f"wav_{way}.npz", "evaluate.py --out writes it")
    with np.load(path) as waves:
        if sentence >= len(waves.files):
            raise InputError(f"{path}: there are {len(waves.files)} sentences, no {sentence}")
        return waves[waves.files[sentence]] / INT16_SCALE


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--evaluation", type=Path, required=True, help="--out of evaluate.py")
    add("--sentence", type=int, default=0, help="which, from 0 (default: %(default)s)")
    add("--ways", default="teacher,codec,greedy", help="waves, from top to bottom (default: %(default)s)")
    add("--out", type=Path, required=True, help="the picture")
    options = parser.parse_args()
    waves = [_wave(options.evaluation, way, options.sentence) for way in options.ways.split(",")]
    write_png(options.out, stacked([spectrogram(wave) for wave in waves]))


if __name__ == "__main__":
    run_tool(main)
