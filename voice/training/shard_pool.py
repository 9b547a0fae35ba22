"""Random crops of the teacher's speech for training."""
from pathlib import Path

import torch

from inputs import InputError
from pcm import INT16_SCALE, LABEL_SAMPLES, SAMPLE_RATE
from shards import list_shards, read_shard

# Every second crop of a batch is made louder or softer by a random gain.
MIN_GAIN_DB = -8
MAX_GAIN_DB = 3


class ShardPool:
    """The samples and phone labels of all shards so far, in device memory."""

    def __init__(self, folder: Path, device: str, max_hours: float):
        self._folder = folder
        self._device = device
        self._max_samples = max_hours * 3600 * SAMPLE_RATE
        self._seen: set[Path] = set()
        self._shard_samples: list[torch.Tensor] = []
        self._shard_labels: list[torch.Tensor] = []
        self._samples: torch.Tensor | None = None
        self._labels: torch.Tensor | None = None

    def refresh(self) -> float:
        """Reads the shards that are new in the folder, up to max_hours. Returns the hours of speech held."""
        new = [path for path in list_shards(self._folder) if path not in self._seen]
        held = len(self._shard_samples)
        for path in new:
            if sum(len(samples) for samples in self._shard_samples) >= self._max_samples:
                break
            samples, labels, _ = read_shard(path)
            self._seen.add(path)
            self._shard_samples.append(torch.from_numpy(samples).to(self._device))
            self._shard_labels.append(torch.from_numpy(labels).to(self._device))
        if len(self._shard_samples) > held:
            self._samples = torch.cat(self._shard_samples)
            self._labels = torch.cat(self._shard_labels)
        return 0.0 if self._samples is None else len(self._samples) / SAMPLE_RATE / 3600

    def batch(self, count: int, length: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Crops that start on a label: waves [count, 1, length] and labels [count, length/LABEL_SAMPLES]."""
        label_count = length // LABEL_SAMPLES
        if self._samples is None or len(self._labels) <= label_count:
            raise InputError(
                f"{self._folder}: too little speech for crops of {length} samples; make more shards"
            )
        start = torch.randint(0, len(self._labels) - label_count, (count, 1), device=self._device)
        sample_index = start * LABEL_SAMPLES + torch.arange(length, device=self._device)
        waves = self._samples[sample_index].float() / INT16_SCALE
        gain_db = torch.empty(count, 1, device=self._device).uniform_(MIN_GAIN_DB, MAX_GAIN_DB)
        gain = 10 ** (gain_db / 20)
        gain[::2] = 1
        labels = self._labels[start + torch.arange(label_count, device=self._device)].long()
        return (waves * gain).clamp(-1, 1)[:, None], labels
