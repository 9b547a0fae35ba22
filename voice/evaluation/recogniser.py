"""A small phone recogniser, trained on the teacher's speech: measures how intelligible a voice is."""
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import training_path  # noqa: F401
from checkpoints import load_safetensors, save_safetensors
from flite import PHONE_COUNT
from inputs import InputError
from measures import collapse
from pcm import LABEL_SAMPLES
from shard_pool import ShardPool
from spectra import LogMel

CHANNELS = 192
MEL_BANDS = 80
LOG_MEL_DEVIATION = 0.8  # of speech, about
MAX_TRAINING_HOURS = 20
CROP_LABELS = 130  # about 3 s
BATCH = 48
LEARNING_RATE = 2e-3

# The training audio gets noise and random colouring, so that the recogniser does not rely on clean sound.
NOISE_DB = (-80, -42)
COLOURING_TAPS = 5
COLOURING_DEVIATION = 0.15

# Recognition: log probability that a change of phone costs, against phones of a single label.
SWITCH_COST = 3.0


class Recogniser(nn.Module):
    """A phone classifier for each label of 24 ms: convolutions over log mels, then a bidirectional GRU."""

    def __init__(self):
        super().__init__()
        self.mel = LogMel(2 * LABEL_SAMPLES, MEL_BANDS, LABEL_SAMPLES // 2, 1e-4)
        self.convolutions = nn.Sequential(
            nn.Conv1d(MEL_BANDS, CHANNELS, 5, 1, 2),
            nn.GELU(),
            nn.Conv1d(CHANNELS, CHANNELS, 5, 2, 2),
            nn.GELU(),
            nn.Conv1d(CHANNELS, CHANNELS, 5, 1, 2),
            nn.GELU(),
        )
        self.recurrent = nn.GRU(CHANNELS, CHANNELS, 2, batch_first=True, bidirectional=True)
        self.output = nn.Linear(2 * CHANNELS, PHONE_COUNT)

    def forward(self, waves: torch.Tensor) -> torch.Tensor:
        """[B, samples] -> phone logits [B, labels, PHONE_COUNT]."""
        mel = self.mel(waves)
        mel = (mel - mel.mean((1, 2), keepdim=True)) / LOG_MEL_DEVIATION
        labels = waves.shape[-1] // LABEL_SAMPLES
        return self.output(self.recurrent(self.convolutions(mel)[..., :labels].transpose(1, 2))[0])


def _disturbed(waves: torch.Tensor) -> torch.Tensor:
    """[B, samples] with noise and colouring."""
    count, device = len(waves), waves.device
    noise = torch.randn_like(waves)
    waves = waves + noise * 10 ** (torch.empty(count, 1, device=device).uniform_(*NOISE_DB) / 20)
    taps = torch.randn(count, 1, COLOURING_TAPS, device=device) * COLOURING_DEVIATION
    taps[:, :, COLOURING_TAPS // 2] = 1
    return F.conv1d(waves[None], taps, padding=COLOURING_TAPS // 2, groups=count)[0]


def train_recogniser(data: Path, path: Path, seconds: float) -> None:
    """Trains on the shards of a folder for a wall-clock time and writes the weights."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    net = Recogniser().to(device)
    optimiser = torch.optim.AdamW(net.parameters(), LEARNING_RATE)
    pool = ShardPool(data, device, MAX_TRAINING_HOURS)
    if not pool.refresh():
        raise InputError(f"{data} holds no shards: make some with teacher.py --out {data}")
    begun, step = time.time(), 0
    while (progress := (time.time() - begun) / seconds) < 1:
        for group in optimiser.param_groups:
            group["lr"] = LEARNING_RATE * (1 - progress) + 1e-6
        waves, labels = pool.batch(BATCH, CROP_LABELS * LABEL_SAMPLES)
        logits = net(_disturbed(waves[:, 0]))
        loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), label_smoothing=0.05)
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimiser.step()
        step += 1
        if step % 200 == 0:
            print(f"recogniser {step} {loss.item():.3f}", flush=True)
    save_safetensors(net.state_dict(), path)


def _likeliest(log_probability: np.ndarray) -> list[int]:
    """Labels [labels, PHONE_COUNT] -> phones, by the Viterbi algorithm with one cost for every change."""
    score, back = log_probability[0], []
    for current in log_probability[1:]:
        best = score.argmax()
        stays = score >= score[best] - SWITCH_COST
        back.append(np.where(stays, np.arange(len(score)), best))
        score = np.where(stays, score, score[best] - SWITCH_COST) + current
    path = [int(score.argmax())]
    for previous in back[::-1]:
        path.append(int(previous[path[-1]]))
    return collapse(path[::-1])


class PhoneListener:
    """Hears phones, with the weights that train_recogniser wrote."""

    def __init__(self, path: Path):
        self._device = "cuda" if torch.cuda.is_available() else "cpu"
        self._net = Recogniser().to(self._device).eval()
        self._net.load_state_dict(load_safetensors(path))

    def expected(self, phones: Sequence[int]) -> list[int]:
        """The teacher's phones, all of which it knows."""
        return list(phones)

    def hear(self, waves: Sequence[np.ndarray]) -> list[list[int]]:
        """The likeliest phones of each float wave [samples]."""
        return [self._hear(wave) for wave in waves]

    @torch.no_grad()
    def _hear(self, wave: np.ndarray) -> list[int]:
        logits = self._net(torch.tensor(wave, device=self._device).float()[None])[0]
        return _likeliest(logits.log_softmax(-1).cpu().numpy())
