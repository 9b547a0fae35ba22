"""Makes the training data: texts of the grammar, spoken by flite in many voices, as shards (see shards.py).

A third of the speech is the default speaker's. The other speakers are variants of four flite voices, made by
changing pitch, tempo, vocal-tract length (resampling) and spectral tilt.
"""
import argparse
import math
import multiprocessing
import os
import random
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from flite import SILENCE_ID, Flite
from inputs import InputError, run_tool
from pcm import FRAME_SAMPLES, INT16_SCALE, LABEL_SAMPLES, SAMPLE_RATE
from shards import Groups, list_shards, shard_index, write_shard
from text import TextGenerator, load_words

# Loudness. The first scaling makes all voices alike, so that the thresholds mean the same for each of them.
WORKING_RMS = 3000.0  # int16 units
AUDIBLE = 300.0  # int16 units after the first scaling: 20 dB below the speech level
MIN_AUDIBLE_SAMPLES = 500
TARGET_RMS = 0.09 * INT16_SCALE  # speech level near -21 dBFS
TARGET_PEAK = 0.9 * INT16_SCALE

# Silence kept around the audible part, in samples.
LEAD_IN = 650
LEAD_OUT = 1300
FADE = 160
TAIL = 200  # at least this much digital silence before the end of the last frame

TILT_PIVOT_HZ = 1000.0  # the tilt leaves this frequency as it is
TILT_FLOOR_HZ = 60.0  # no further change below
MAX_TILT_DB = 12.0

WordLists = tuple[list[str], list[str]]  # common words, all words

LONG_TEXT_SHARE = 0.12
DEFAULT_SHARE = 0.35  # of the default speaker: the codec needs more of the others, whom it hears less alike
SECONDS_PER_SPEAKER = 44  # several utterances in a row, so that a row of training data can hold a reference
MAX_UTTERANCE_SECONDS = 16


class Speaker(NamedTuple):
    """A flite voice and what is changed about it."""

    voice: str
    ratio: float = 1.0  # resampling: above 1 is a shorter vocal tract (and a shorter sound)
    stretch: float = 1.0  # of the durations, before resampling
    pitch: float = 1.0  # of the fundamental frequency, before resampling
    tilt: float = 0.0  # dB an octave


DEFAULT_SPEAKER = Speaker("rms")  # what the trained voice speaks with when there is no reference


def random_speaker(rng: random.Random) -> Speaker:
    """A variant of one of the four voices; the weights of the list follow the quality of the voices."""
    voice = rng.choice("rms rms rms slt slt slt awb awb awb kal16".split())
    ratio = math.exp(rng.uniform(math.log(0.88), math.log(1.18)))
    stretch = rng.uniform(0.88, 1.15) * ratio**0.6  # takes back most of the change of tempo by resampling
    return Speaker(voice, ratio, stretch, rng.uniform(0.85, 1.25), rng.uniform(-3, 3))


def _resample_and_tilt(samples: np.ndarray, ratio: float, tilt: float) -> np.ndarray:
    """Both at once on the spectrum, which is cut or extended with zeros and then read at the same rate."""
    size = (
        1 << (len(samples) + 2000).bit_length()
    )  # 2000 zeros at least: the filter's ringing must not wrap around
    new_size = int(round(size / ratio / 2)) * 2
    spectrum = np.fft.rfft(samples, size)
    new_spectrum = np.zeros(new_size // 2 + 1, np.complex64)
    bins = min(len(spectrum), len(new_spectrum))
    hertz = np.arange(bins) * (SAMPLE_RATE / new_size)
    gain_db = tilt * np.log2(np.maximum(hertz, TILT_FLOOR_HZ) / TILT_PIVOT_HZ)
    new_spectrum[:bins] = spectrum[:bins] * 10 ** (np.clip(gain_db, -MAX_TILT_DB, MAX_TILT_DB) / 20)
    length = int(len(samples) / ratio)
    return np.fft.irfft(new_spectrum, new_size)[:length].astype(np.float32) * (new_size / size)


def _trim_and_level(samples: np.ndarray) -> tuple[np.ndarray, int] | None:
    """Speech at the target level with faded ends, and the samples cut at its start; None if silent."""
    if len(samples) <= 800 or np.abs(samples).max() <= 0:  # 50 ms
        return None
    spoken = samples[np.abs(samples) > 0.05 * np.abs(samples).max()]
    samples = samples * (WORKING_RMS / (np.sqrt((spoken**2).mean()) + 1e-9))
    audible = np.flatnonzero(np.abs(samples) > AUDIBLE)
    if len(audible) < MIN_AUDIBLE_SAMPLES:
        return None
    start, end = max(0, audible[0] - LEAD_IN), min(len(samples), audible[-1] + LEAD_OUT)
    samples = samples[start:end]
    speech_rms = np.sqrt((samples[np.abs(samples) > AUDIBLE] ** 2).mean())
    samples *= min(TARGET_RMS / speech_rms, TARGET_PEAK / np.abs(samples).max())
    fade = np.linspace(0, 1, FADE, dtype=np.float32)
    samples[:FADE] *= fade
    samples[-FADE:] *= fade[::-1]
    return samples, start


class Teacher:
    """Speaks texts in the voice of any Speaker."""

    def __init__(self):
        self._flite = Flite()

    def speak(self, text: str, speaker: Speaker = DEFAULT_SPEAKER) -> tuple[np.ndarray, np.ndarray] | None:
        """int16 samples, padded to whole frames, and a phone id for each LABEL_SAMPLES; None if silent."""
        utterance = self._flite.synthesise(text, speaker.voice, speaker.stretch, speaker.pitch)
        samples = utterance.samples
        if speaker.ratio != 1 or speaker.tilt:
            samples = _resample_and_tilt(samples, speaker.ratio, speaker.tilt)
        levelled = _trim_and_level(samples)
        if levelled is None:
            return None
        speech, start = levelled
        total = -(-(len(speech) + TAIL) // FRAME_SAMPLES) * FRAME_SAMPLES
        padded = np.zeros(total, np.int16)
        padded[: len(speech)] = speech.astype(np.int16)
        ids = np.array([phone for phone, _ in utterance.phones] + [SILENCE_ID], np.uint8)
        ends = np.array([end / speaker.ratio - start for _, end in utterance.phones])
        centres = np.arange(total // LABEL_SAMPLES) * LABEL_SAMPLES + LABEL_SAMPLES // 2
        return padded, ids[np.searchsorted(ends, centres, "right")]


def make_shard(
    teacher: Teacher, texts: TextGenerator, seed: int, seconds: float, default_share: float
) -> tuple[np.ndarray, np.ndarray, Groups]:
    """Samples, phone labels and groups: at least `seconds` of speech, one speaker after the other."""
    rng = random.Random(seed)
    groups, samples, labels, position = [], [], [], 0
    while position < seconds * SAMPLE_RATE:
        is_default = rng.random() < default_share
        speaker = DEFAULT_SPEAKER if is_default else random_speaker(rng)
        utterances = []
        group_end = position + SECONDS_PER_SPEAKER * SAMPLE_RATE
        while position < group_end:
            text = texts.long_utterance() if rng.random() < LONG_TEXT_SHARE else texts.utterance()
            spoken = teacher.speak(text, speaker)
            if spoken is None or len(spoken[0]) > MAX_UTTERANCE_SECONDS * SAMPLE_RATE:
                continue
            samples.append(spoken[0])
            labels.append(spoken[1])
            utterances.append((text, position, len(spoken[0])))
            position += len(spoken[0])
        groups.append((is_default, utterances))
    return np.concatenate(samples), np.concatenate(labels), groups


def _write_shards(
    options: argparse.Namespace, out: Path, teacher: Teacher, word_lists: WordLists, indices: Sequence[int]
) -> None:
    """One worker's share.

    A shard has seeds of its own, so texts and speakers do not depend on the number of workers. flite's noise
    does: its random state runs on from one utterance of a process to the next.
    """
    os.nice(5)
    for index in indices:
        texts = TextGenerator(
            options.seed * 100003 + index, *word_lists
        )  # primes keep apart the shards of all seeds
        seconds = options.shard_minutes * 60
        shard = make_shard(teacher, texts, options.seed * 7919 + index, seconds, options.default_share)
        write_shard(out, index, *shard)


def start_workers(options: argparse.Namespace, out: Path) -> list[multiprocessing.Process]:
    """Processes that make the shards that are missing in a folder; forked, so before a GPU is used.

    options: hours, shard_minutes, default_share, seed, workers and the word lists.
    """
    out.mkdir(parents=True, exist_ok=True)
    teacher = Teacher()
    word_lists = load_words(options.small), load_words(options.full)
    present = {shard_index(path) for path in list_shards(out)}
    total = max(1, round(options.hours * 60 / options.shard_minutes))
    missing = [index for index in range(total) if index not in present]
    fork = multiprocessing.get_context("fork")
    workers = []
    for first in range(min(options.workers, len(missing))):
        arguments = (options, out, teacher, word_lists, missing[first :: options.workers])
        workers.append(fork.Process(target=_write_shards, args=arguments))
        workers[-1].start()
    return workers


def add_word_list_options(parser: argparse.ArgumentParser) -> None:
    """--small and --full."""
    add = parser.add_argument
    add(
        "--small",
        type=Path,
        default=Path("/usr/share/dict/american-english-small"),
        help="list of common words, one a line (default: %(default)s, of Debian's wamerican-small)",
    )
    add(
        "--full",
        type=Path,
        default=Path("/usr/share/dict/american-english"),
        help="list of all words, one a line (default: %(default)s, of Debian's wamerican)",
    )


def add_speech_options(parser: argparse.ArgumentParser) -> None:
    """What start_workers reads."""
    add = parser.add_argument
    add(
        "--hours",
        type=float,
        default=100,
        help="speech in the folder at the end, with what is there (default: %(default)s)",
    )
    add(
        "--shard-minutes",
        type=float,
        default=10,
        help="speech in a shard; trainers at work see a shard once it is full (default: %(default)s)",
    )
    add(
        "--default-share",
        type=float,
        default=DEFAULT_SHARE,
        help="of the default speaker's in all speech, 0 to 1 (default: %(default)s)",
    )
    add(
        "--seed",
        type=int,
        default=1,
        help="another seed gives fresh texts and speakers (default: %(default)s)",
    )
    add(
        "--workers",
        type=int,
        default=os.cpu_count(),
        help="processes (default: one for each core, %(default)s)",
    )
    add_word_list_options(parser)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--out",
        type=Path,
        required=True,
        help="folder for the shards; made if missing; only missing ones are made",
    )
    add_speech_options(parser)
    options = parser.parse_args()
    workers = start_workers(options, options.out)
    for worker in workers:
        worker.join()
    failed = sum(worker.exitcode != 0 for worker in workers)
    if failed:
        raise InputError(f"{failed} of {len(workers)} workers failed; the reason is above")


if __name__ == "__main__":
    run_tool(main)
