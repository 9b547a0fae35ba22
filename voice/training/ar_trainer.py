"""The training loop of the DualAR model.

B: batch, T: positions, K: codebooks, F: frames of a batch on which the fast model is trained.
"""
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

from budget import Budget, StepClock
from checkpoints import save_safetensors
from dual_ar import DualAR
from muon import Muon
from prompt import SEMANTIC_BEGIN
from rows import Rows

WARM_UP_STEPS = 150
DECAY_SHARE = 0.55  # of the run, at its end, over which the learning rate falls to zero
CORRUPTION_DECLINE = 0.6  # of the history noise, over the whole run
MATRIX_WEIGHT_DECAY = 0.02
ADAM_WEIGHT_DECAY = 0.01
MAX_GRADIENT_NORM = 1.0
IGNORED = -100  # cross_entropy's mark for positions that do not count
LOG_STEPS_ON_GPU = 200
LOG_STEPS_ON_CPU = 10
LOG_WINDOW = 100  # steps over which the logged losses are averaged

Losses = Callable[..., tuple[torch.Tensor, torch.Tensor]]


@dataclass(frozen=True)
class Stage:
    """Rows of one length."""

    length: int
    rows: Rows


@dataclass(frozen=True)
class Settings:
    """What the options of train_ar.py say about the loop."""

    learning_rate: float
    tokens: int  # in a batch
    fast_frames: int
    long_from: float  # progress at which the second stage begins
    corruption: float
    save_every: float  # seconds
    muon: bool
    compiled: bool


@dataclass(frozen=True)
class Batch:
    """Inputs, targets, what is supervised, and the flat indices of the frames for the fast model."""

    inputs: torch.Tensor  # [B, T, 1+K]
    targets: torch.Tensor  # [B, T, 1+K]
    supervised: torch.Tensor  # [B, T]
    frame_index: torch.Tensor  # [F]


def corrupted(inputs: torch.Tensor, codebook_size: int, probability: float) -> torch.Tensor:
    """Noise on the history, so that generation survives its own mistakes.

    Some frames are replaced by other frames of the batch, and half as often single residual codes by random
    ones.
    """
    is_frame = inputs[..., 0] >= SEMANTIC_BEGIN
    flat = inputs.reshape(-1, inputs.shape[-1])
    device = inputs.device
    other = flat[torch.randint(0, len(flat), is_frame.shape, device=device)]
    other_is_frame = other[..., 0] >= SEMANTIC_BEGIN
    replaced = is_frame & other_is_frame & (torch.rand(is_frame.shape, device=device) < probability)
    noisy = torch.where(replaced[..., None], other, inputs)
    residual_shape = (*is_frame.shape, inputs.shape[-1] - 2)
    random_code = (torch.rand(*residual_shape, device=device) < probability / 2) & is_frame[..., None]
    codes = torch.randint(0, codebook_size, random_code.shape, device=device)
    noisy[..., 2:] = torch.where(random_code, codes, noisy[..., 2:])
    return noisy


def draw_batch(rows: Rows, count: int, codebook_size: int, corruption: float, fast_frames: int) -> Batch:
    """Random rows; the frames for the fast model are a random choice of the supervised ones."""
    device = rows.tokens.device
    index = torch.randint(0, len(rows.tokens), (count,), device=device)
    tokens = rows.tokens[index].long()
    targets, supervised = tokens[:, 1:], rows.supervised[index][:, 1:]
    inputs = corrupted(tokens[:, :-1].clone(), codebook_size, corruption)
    is_supervised_frame = supervised & (targets[..., 0] >= SEMANTIC_BEGIN)
    score = torch.rand(supervised.shape, device=device) + is_supervised_frame.float()
    frame_index = score.flatten().topk(min(fast_frames, score.numel())).indices
    return Batch(inputs, targets, supervised, frame_index)


def make_losses(model: DualAR) -> Losses:
    """The losses as a function of its own, which can be compiled."""
    residual_codebooks = model.codebooks - 1

    def losses(
        hidden: torch.Tensor, targets: torch.Tensor, supervised: torch.Tensor, frame_index: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Cross-entropy of the tokens (a scalar), and of each residual codebook [K-1]."""
        tokens = torch.where(supervised, targets[..., 0], torch.full_like(targets[..., 0], IGNORED))
        logits = model.head(hidden).float().flatten(0, 1)
        token_loss = F.cross_entropy(logits, tokens.flatten(), reduction="sum") / supervised.sum().clamp(
            min=1
        )
        codes = targets[..., 1:].flatten(0, 1)[frame_index]
        weight = (supervised & (targets[..., 0] >= SEMANTIC_BEGIN)).flatten()[frame_index].float()
        code_logits = model.fast(hidden.flatten(0, 1)[frame_index], codes[:, :-1])[:, 1:]
        each = F.cross_entropy(code_logits.float().flatten(0, 1), codes[:, 1:].flatten(), reduction="none")
        each = each.view(len(frame_index), residual_codebooks)
        return token_loss, (each * weight[:, None]).sum(0) / weight.sum().clamp(min=1)

    return losses


class Optimisers:
    """Muon for the matrices of the blocks, AdamW for the rest."""

    def __init__(self, model: DualAR, learning_rate: float, use_muon: bool):
        matrices, rest = [], []
        for name, parameter in model.named_parameters():
            is_matrix = parameter.ndim == 2 and "layers." in name
            (matrices if use_muon and is_matrix else rest).append(parameter)
        self._parameters = list(model.parameters())
        self._muon = Muon(matrices) if matrices else None
        groups = [
            {"params": [parameter for parameter in rest if parameter.ndim > 1]},
            {"params": [parameter for parameter in rest if parameter.ndim < 2], "weight_decay": 0.0},
        ]
        fused = {"fused": True} if self._parameters[0].is_cuda else {}
        self._adam = torch.optim.AdamW(
            groups, lr=learning_rate, betas=(0.9, 0.95), weight_decay=ADAM_WEIGHT_DECAY, **fused
        )

    def step(self, learning_rate: float) -> None:
        """Applies the gradients, clipped to their joint norm."""
        nn.utils.clip_grad_norm_(self._parameters, MAX_GRADIENT_NORM)
        if self._muon:
            self._muon.step(learning_rate, MATRIX_WEIGHT_DECAY)
        for group in self._adam.param_groups:
            group["lr"] = learning_rate
        self._adam.step()


def save_model(model: DualAR, path: Path) -> None:
    """Writes bf16 weights; a file of that name is replaced at once."""
    temporary = path.with_suffix(".tmp")
    weights = {name: tensor.detach().to(torch.bfloat16) for name, tensor in model.state_dict().items()}
    save_safetensors(weights, temporary, {"format": "pt"})
    os.replace(temporary, path)


def learning_rate_at(peak: float, step: int, progress: float) -> float:
    """Linear warm-up, then constant, then a linear decay that ends just above zero."""
    return peak * min(1, (step + 1) / WARM_UP_STEPS) * min(1, (1 - progress) / DECAY_SHARE + 0.005)


class ArTrainer:
    """One training run: short rows first, long ones later."""

    def __init__(self, model: DualAR, stages: tuple[Stage, Stage], settings: Settings):
        self._model = model
        self._stages = stages
        self._settings = settings
        self._on_gpu = model.embeddings.weight.is_cuda
        self._optimisers = Optimisers(model, settings.learning_rate, settings.muon)
        self._embed, self._losses = model.embed, make_losses(model)
        if settings.compiled:
            self._embed, self._losses = torch.compile(self._embed), torch.compile(self._losses)
            for layer in model.layers:
                layer.compile()

    def _step(self, step: int, progress: float) -> torch.Tensor:
        """One update. Returns the losses [K]: of the tokens and of each residual codebook."""
        settings, config = self._settings, self._model.config
        stage = self._stages[progress >= settings.long_from]
        count = max(1, settings.tokens // stage.length)
        corruption = settings.corruption * (1 - CORRUPTION_DECLINE * progress)
        batch = draw_batch(stage.rows, count, config["codebook_size"], corruption, settings.fast_frames)
        with torch.autocast("cuda" if self._on_gpu else "cpu", dtype=torch.bfloat16, enabled=self._on_gpu):
            hidden = self._embed(batch.inputs)
            rope = self._model.rope[: stage.length]
            for layer in self._model.layers:
                hidden = layer(hidden, rope)
            token, residual = self._losses(hidden, batch.targets, batch.supervised, batch.frame_index)
            loss = token + residual.mean()
        loss.backward()
        self._optimisers.step(learning_rate_at(settings.learning_rate, step, progress))
        self._model.zero_grad(set_to_none=True)
        return torch.cat([token.detach()[None], residual.detach()])

    def train(self, budget: Budget, out: Path) -> int:
        """Trains until the budget is spent; writes the model and train_log.json. Returns the steps."""
        log_steps = LOG_STEPS_ON_GPU if self._on_gpu else LOG_STEPS_ON_CPU
        step, recent, log = 0, [], []
        clock, saved = StepClock(), budget.elapsed()
        while (progress := budget.progress(step)) < 1:
            recent.append(self._step(step, progress))
            step += 1
            if step % log_steps:
                continue
            losses = torch.stack(recent[-LOG_WINDOW:]).mean(0).tolist()
            recent = []
            elapsed = budget.elapsed()
            log.append([step, elapsed] + losses)
            self._report(step, elapsed, clock.milliseconds_per_step(step), progress, losses)
            if elapsed - saved > self._settings.save_every:
                saved = elapsed
                save_model(self._model, out / "model.partial.safetensors")
        save_model(self._model, out / "model.safetensors")
        (out / "train_log.json").write_text(json.dumps(log))
        return step

    def _report(
        self, step: int, elapsed: float, milliseconds: float, progress: float, losses: list[float]
    ) -> None:
        rate = learning_rate_at(self._settings.learning_rate, step - 1, progress)
        speed = f"{milliseconds:.1f} ms/step {self._settings.tokens / milliseconds:.0f} ktok/s"
        residual = " ".join(f"{loss:.2f}" for loss in losses[1:])
        print(
            f"step {step} {elapsed:.0f}s {speed} lr {rate:.5f} semantic {losses[0]:.3f} residual {residual}",
            flush=True,
        )
