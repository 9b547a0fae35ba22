"""The teacher's speech as codes: what the DualAR model learns from."""
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch

from codec import Codec
from pcm import FRAME_SAMPLES, INT16_SCALE, SAMPLE_RATE
from shards import Groups

BATCH_ON_GPU = 96
BATCH_ON_CPU = 4
FRAME_MULTIPLE = 16  # batches are padded to multiples of it: with few shapes the allocator reuses its blocks


@dataclass
class EncodedSpeech:
    """One entry for each utterance in the lists."""

    codec_config: dict[str, Any]
    texts: list[str] = field(default_factory=list)
    codes: list[np.ndarray] = field(default_factory=list)  # int16 [frames, codebooks]
    is_default: list[bool] = field(default_factory=list)  # spoken by the default speaker?
    groups: list[int] = field(default_factory=list)  # utterances of a group have one speaker
    frames: int = 0  # of all utterances

    def hours(self) -> float:
        """The duration of all speech."""
        return self.frames * FRAME_SAMPLES / SAMPLE_RATE / 3600


class _Utterance(NamedTuple):
    text: str
    start: int  # in samples
    frames: int
    is_default: bool
    group: int


def _encode_batch(codec: Codec, samples: torch.Tensor, utterances: list[_Utterance]) -> torch.Tensor:
    """Codes [utterance, frames, codebooks]; beyond an utterance's own frames they are meaningless."""
    device = samples.device
    longest = max(utterance.frames for utterance in utterances)
    padded_frames = -(-longest // FRAME_MULTIPLE) * FRAME_MULTIPLE
    index = torch.arange(padded_frames * codec.frame_samples, device=device)
    extents = [[utterance.start, utterance.frames * codec.frame_samples] for utterance in utterances]
    start, length = torch.tensor(extents, device=device).t()[..., None]
    waves = samples[(start + index).clamp(max=len(samples) - 1)].float() / INT16_SCALE
    waves = torch.where(index < length, waves, torch.zeros((), device=device))
    with torch.autocast(device.type, dtype=torch.bfloat16, enabled=device.type != "cpu"):
        codes = codec.encode(waves[:, None])
    return codes.transpose(1, 2).short()


def _encode_shard(codec: Codec, samples: torch.Tensor, utterances: list[_Utterance]) -> list[np.ndarray]:
    """Codes [frames, codebooks] of each utterance, in order. Like lengths are encoded together."""
    batch_size = BATCH_ON_GPU if samples.is_cuda else BATCH_ON_CPU
    order = sorted(range(len(utterances)), key=lambda i: utterances[i].frames)
    batches = []
    for begin in range(0, len(order), batch_size):
        indices = order[begin : begin + batch_size]
        batches.append((indices, _encode_batch(codec, samples, [utterances[i] for i in indices])))
    encoded: list[np.ndarray] = [None] * len(utterances)
    for indices, codes in batches:  # only now, so that the device never waits for a copy
        on_host = codes.cpu().numpy()
        for row, i in enumerate(indices):
            encoded[i] = on_host[row, : utterances[i].frames]
    return encoded


@torch.no_grad()
def encode_shard(
    codec: Codec, shard: tuple[np.ndarray, np.ndarray, Groups], speech: EncodedSpeech, device: str
) -> None:
    """Adds what read_shard gave."""
    samples, _, groups = shard
    first_group = speech.groups[-1] + 1 if speech.groups else 0
    utterances = [
        _Utterance(text, start, length // codec.frame_samples, is_default, first_group + i)
        for i, (is_default, spoken) in enumerate(groups)
        for text, start, length in spoken
    ]
    on_device = torch.from_numpy(samples).to(device, non_blocking=True)
    for utterance, codes in zip(utterances, _encode_shard(codec, on_device, utterances)):
        speech.texts.append(utterance.text)
        speech.codes.append(codes)
        speech.is_default.append(utterance.is_default)
        speech.groups.append(utterance.group)
        speech.frames += len(codes)
