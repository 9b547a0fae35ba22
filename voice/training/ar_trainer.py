"""The training loop of the DualAR model.

B: batch, T: positions, K: codebooks, F: frames of a batch on which the fast model is trained.
"""
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

from budget import Budget, StepClock
from checkpoints import load_weights, save_safetensors
from dual_ar import DualAR
from muon import Muon
from prompt import SEMANTIC_BEGIN
from row_pool import RowPool
from rows import Rows
from stretch import Stretch, replace_file

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
REFRESH_EVERY = 8.0  # seconds between looks for new shards
REFRESH_SECONDS = 2.0  # of encoding at one look

PART = "dual_ar"  # of the training
WEIGHTS_FILE = "model.safetensors"
ROW_LENGTHS = (512, 1024)  # short rows first, long ones later

Losses = Callable[..., tuple[torch.Tensor, torch.Tensor]]


@dataclass(frozen=True)
class Settings:
    """What the options of train_voice.py say about the loop."""

    learning_rate: float
    tokens: int  # in a batch
    fast_frames: int
    long_from: float  # progress at which the long rows begin
    max_passes: float  # over the rows, after which all schedules end
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

    def state(self) -> dict:
        """Of both."""
        return {"adam": self._adam.state_dict(), "muon": self._muon.state() if self._muon else []}

    def load_state(self, state: dict) -> None:
        """What state() gave."""
        self._adam.load_state_dict(state["adam"])
        if self._muon:
            self._muon.load_state(state["muon"])


def learning_rate_at(peak: float, step: int, progress: float) -> float:
    """Linear warm-up, then constant, then a linear decay that ends just above zero."""
    return peak * min(1, (step + 1) / WARM_UP_STEPS) * min(1, (1 - progress) / DECAY_SHARE + 0.005)


class ArTrainer:
    """One training run."""

    def __init__(self, model: DualAR, rows: RowPool, settings: Settings):
        self._model = model
        self._rows = rows
        self._settings = settings
        self._on_gpu = model.embeddings.weight.is_cuda
        self._optimisers = Optimisers(model, settings.learning_rate, settings.muon)
        self._passes = 0.0
        self._embed, self._losses = model.embed, make_losses(model)
        if settings.compiled:
            self._embed, self._losses = torch.compile(self._embed), torch.compile(self._losses)
            for layer in model.layers:
                layer.compile()

    def resume(self, stretch: Stretch) -> None:
        """Goes on from this machine's own state, or from an earlier stretch's weights, or from nothing."""
        state = stretch.load_state(PART, str(self._model.embeddings.weight.device))
        if state:
            self._model.load_state_dict(state["model"])
            self._optimisers.load_state(state["optimisers"])
            self._passes = state["passes"]
        elif stretch.progress(PART):
            load_weights(self._model, stretch.out / WEIGHTS_FILE)

    def _length(self, progress: float) -> int:
        return ROW_LENGTHS[progress >= self._settings.long_from]

    def _batch(self, rows: Rows, length: int, corruption: float) -> Batch:
        count, entries = max(1, self._settings.tokens // length), self._model.config["codebook_size"]
        return draw_batch(rows, count, entries, corruption, self._settings.fast_frames)

    def _batch_losses(self, batch: Batch, length: int) -> tuple[torch.Tensor, torch.Tensor]:
        with torch.autocast("cuda" if self._on_gpu else "cpu", dtype=torch.bfloat16, enabled=self._on_gpu):
            hidden = self._embed(batch.inputs)
            rope = self._model.rope[:length]
            for layer in self._model.layers:
                hidden = layer(hidden, rope)
            return self._losses(hidden, batch.targets, batch.supervised, batch.frame_index)

    def _step(self, step: int, progress: float) -> torch.Tensor:
        """One update. Returns the losses [K]: of the tokens and of each residual codebook."""
        settings, length = self._settings, self._length(progress)
        corruption = settings.corruption * (1 - CORRUPTION_DECLINE * progress)
        batch = self._batch(self._rows.rows(length), length, corruption)
        token, residual = self._batch_losses(batch, length)
        (token + residual.mean()).backward()
        self._optimisers.step(learning_rate_at(settings.learning_rate, step, progress))
        self._model.zero_grad(set_to_none=True)
        return torch.cat([token.detach()[None], residual.detach()])

    def compile(self) -> None:
        """Both lengths, forwards and backwards: a minute on a GPU, which is not the schedule's."""
        if not self._settings.compiled:
            return
        for length in ROW_LENGTHS:
            token, residual = self._batch_losses(self._batch(self._rows.rows(length), length, 0.0), length)
            (token + residual.mean()).backward()
        self._model.zero_grad(set_to_none=True)

    def _held_out_loss(self, progress: float) -> float:
        """Of the semantic token on a batch of shards that are not trained on, without noise.

        With gradients, which nobody uses: without, the compiled functions would be compiled once more.
        """
        length = self._length(progress)
        rows = self._rows.held_out(length)
        if rows is None or not len(rows.tokens):
            return float("nan")
        return self._batch_losses(self._batch(rows, length, 0.0), length)[0].item()

    def train(self, budget: Budget, stretch: Stretch) -> float:
        """Trains until the stretch is over; saves meanwhile. Returns the progress."""
        log_steps = LOG_STEPS_ON_GPU if self._on_gpu else LOG_STEPS_ON_CPU
        step, recent = 0, []
        clock, saved, looked, held = StepClock(), budget.elapsed(), 0.0, 0
        while not budget.is_over(step) and self._passes < self._settings.max_passes:
            progress = max(budget.progress(step), self._passes / self._settings.max_passes)
            if not held or budget.elapsed() - looked > REFRESH_EVERY:
                self._rows.refresh(REFRESH_SECONDS)
                looked, held = budget.elapsed(), self._rows.tokens(self._length(progress))
            recent.append(self._step(step, progress))
            self._passes += self._settings.tokens / max(1, held)
            step += 1
            if step % log_steps:
                continue
            losses = torch.stack(recent[-LOG_WINDOW:]).mean(0).tolist()
            recent = []
            self._report(step, budget, clock.milliseconds_per_step(step), progress, losses)
            if budget.elapsed() - saved > self._settings.save_every:
                saved = budget.elapsed()
                self.save(stretch, progress)
        over = self._passes >= self._settings.max_passes
        progress = 1.0 if over else max(budget.progress(step), self._passes / self._settings.max_passes)
        self.save(stretch, progress)
        return progress

    def save(self, stretch: Stretch, progress: float) -> None:
        """Writes bf16 weights, and this machine's state."""
        weights = self._model.state_dict()
        halves = {name: tensor.detach().to(torch.bfloat16) for name, tensor in weights.items()}
        replace_file(
            stretch.out / WEIGHTS_FILE, lambda path: save_safetensors(halves, path, {"format": "pt"})
        )
        state = {"model": weights, "optimisers": self._optimisers.state()}
        stretch.save_state(PART, state | {"passes": self._passes, "progress": progress})
        stretch.set_progress(PART, progress)

    def _report(
        self, step: int, budget: Budget, milliseconds: float, progress: float, losses: list[float]
    ) -> None:
        rate = learning_rate_at(self._settings.learning_rate, step - 1, progress)
        speed = f"{milliseconds:.1f} ms/step {self._settings.tokens / milliseconds:.0f} ktok/s"
        residual = " ".join(f"{loss:.2f}" for loss in losses[1:])
        print(
            f"step {step} {budget.elapsed():.0f}s at {progress:.3f} {speed} lr {rate:.5f}"
            f" semantic {losses[0]:.3f} (held out, without noise: {self._held_out_loss(progress):.3f})"
            f" residual {residual}; {self._rows.hours:.1f} h, {self._passes:.1f} passes",
            flush=True,
        )
