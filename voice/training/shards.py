"""Shards: the teacher's speech on disk.

A shard is a pair of files. shardNNNNN.npy holds int16 samples, the utterances one after the other.
shardNNNNN.pkl holds a pickled pair (labels, groups): labels are uint8 phone ids, one for LABEL_SAMPLES
samples; groups has one entry for each stretch of one speaker, (is it the default speaker, its utterances), an
utterance being (text, first sample, number of samples). The .pkl is written last: if it exists, the shard is
complete.
"""
import os
import pickle
from pathlib import Path

import numpy as np

Utterances = list[tuple[str, int, int]]  # text, first sample, number of samples
Groups = list[tuple[bool, Utterances]]


def list_shards(folder: Path) -> list[Path]:
    """The .pkl files of the complete shards, in order; none if the folder does not exist."""
    return sorted(folder.glob("shard*.pkl"))


def shard_index(path: Path) -> int:
    """Of one of these files."""
    return int(path.stem.removeprefix("shard"))


def read_shard(path: Path) -> tuple[np.ndarray, np.ndarray, Groups]:
    """Samples, phone labels and groups of one shard."""
    samples = np.load(path.with_suffix(".npy"))
    with open(path, "rb") as file:
        labels, groups = pickle.load(file)
    return samples, labels, groups


def write_shard(folder: Path, index: int, samples: np.ndarray, labels: np.ndarray, groups: Groups) -> None:
    """Writes both files under temporary names first: a trainer at work never reads half a shard."""
    temporary = folder / f"tmp{index}"
    target = folder / f"shard{index:05d}"
    np.save(temporary.with_suffix(".npy"), samples)
    with open(temporary.with_suffix(".pkl"), "wb") as file:
        pickle.dump((labels, groups), file)
    os.rename(temporary.with_suffix(".npy"), target.with_suffix(".npy"))
    os.rename(temporary.with_suffix(".pkl"), target.with_suffix(".pkl"))
