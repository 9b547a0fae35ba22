"""Makes the clips of the named voices that ship with the model: NAME/clip.opus, its words in NAME/clip.lab.

Variants of the teacher's voices, none of them the default speaker. Needs Debian's libopusenc0.
"""
import argparse
import ctypes
from pathlib import Path
from typing import NamedTuple

import numpy as np

from inputs import InputError, run_tool
from pcm import SAMPLE_RATE
from teacher import Speaker, Teacher

BITS_PER_SECOND = 16000
OPUS_SET_BITRATE = 4002  # a request of opus_defines.h
MONO_FAMILY = 0


class Voice(NamedTuple):
    """A name, who speaks and what."""

    name: str
    speaker: Speaker
    text: str


VOICES = (
    Voice("clara", Speaker("slt"), "Good morning, my name is Clara, and I will read this for you."),
    Voice(
        "nora",
        Speaker("slt", 1.02, 1.1, 1.14, 1.0),
        "A light wind moved the curtains in the small white room, and then it was quiet.",
    ),
    Voice(
        "ruth",
        Speaker("slt", 0.92, 0.98, 0.9, -1.0),
        "We have known each other for longer than I can remember.",
    ),
    Voice(
        "iris",
        Speaker("slt", 1.04, 1.0, 1.18, 2.0),
        "The yellow boat is waiting for us near the old bridge, behind the park.",
    ),
    Voice(
        "hugo",
        Speaker("rms", 0.9, 1.05, 0.9, -1.5),
        "The old road goes over the hill and down to the harbor.",
    ),
    Voice("edgar", Speaker("awb"), "It was a fine evening, so we took the longer way home."),
    Voice(
        "felix",
        Speaker("awb", 1.12, 1.08, 1.1, 1.5),
        "Could you show me the photographs that you took on the island last June?",
    ),
    Voice(
        "oscar",
        Speaker("rms", 1.12, 1.08, 1.2, 1.0),
        "I will be there in about an hour, so please wait for me at the gate.",
    ),
)


def write_opus(path: Path, samples: np.ndarray) -> None:
    """Writes int16 samples as an Ogg Opus file."""
    try:
        library = ctypes.CDLL("libopusenc.so.0")
    except OSError as error:
        raise InputError(
            f"cannot load libopusenc.so.0 ({error}): install it (Debian: libopusenc0)"
        ) from error
    library.ope_comments_create.restype = ctypes.c_void_p
    library.ope_encoder_create_file.restype = ctypes.c_void_p
    comments, failure = ctypes.c_void_p(library.ope_comments_create()), ctypes.c_int()
    created = library.ope_encoder_create_file(
        str(path).encode(), comments, SAMPLE_RATE, 1, MONO_FAMILY, ctypes.byref(failure)
    )
    if not created:
        raise InputError(f"{path}: libopusenc failed with {failure.value}")
    encoder = ctypes.c_void_p(created)
    library.ope_encoder_ctl(encoder, OPUS_SET_BITRATE, ctypes.c_int(BITS_PER_SECOND))
    samples = np.ascontiguousarray(samples, np.int16)
    failed = library.ope_encoder_write(encoder, samples.ctypes.data_as(ctypes.c_void_p), len(samples))
    failed = library.ope_encoder_drain(encoder) or failed
    library.ope_encoder_destroy(encoder)
    library.ope_comments_destroy(comments)
    if failed:
        raise InputError(f"{path}: libopusenc failed with {failed}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="folder for the voices; made if missing")
    options = parser.parse_args()
    teacher = Teacher()
    for voice in VOICES:
        folder = options.out / voice.name
        folder.mkdir(parents=True, exist_ok=True)
        samples, _ = teacher.speak(voice.text, voice.speaker)
        write_opus(folder / "clip.opus", samples)
        (folder / "clip.lab").write_text(voice.text)
        size = (folder / "clip.opus").stat().st_size
        print(f"{voice.name}: {len(samples) / SAMPLE_RATE:.2f} s, {size} bytes")


if __name__ == "__main__":
    run_tool(main)
