"""The training loop of the codec: reconstruction, codebooks, phones, and from some point on discriminators.

B: batch, K: codebooks, T: samples of a crop, N: frames of a crop.
"""
import contextlib
import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from budget import Budget, StepClock
from checkpoints import export_codec, import_codec, load_safetensors, save_safetensors
from codec import Codec
from discriminators import Discriminators
from flite import PHONE_COUNT
from inputs import InputError
from pcm import FRAME_SAMPLES, LABEL_SAMPLES
from quantizer import QuantizerOutput
from shard_pool import ShardPool
from spectra import MultiScaleMelLoss
from stretch import Stretch, replace_file

# Weights of the losses; those of the codebooks and of the discriminators' verdict are 1.
MEL_WEIGHT = 5
COMMITMENT_WEIGHT = 0.25
PHONE_WEIGHT = 1.5
FEATURE_WEIGHT = 2

FEWER_CODEBOOKS_SHARE = 0.3  # of the items, which use a random number of residual codebooks
JUDGED_FRAMES = 16  # length of the crops that the discriminators see
MAX_GRADIENT_NORM = 1000.0
MAX_DISCRIMINATOR_GRADIENT_NORM = 100.0

# Learning rates, in shares of --lr where not absolute.
WARM_UP_STEPS = 200
RATE_FLOOR = 1e-6
CAPTURE_RATE = 1e-5  # while the steps before a graph capture run on a repeated batch
DISCRIMINATOR_CAPTURE_RATE = 2e-5
ADVERSARIAL_RATE = 0.7
DISCRIMINATOR_RATE = 0.5

# Schedules, in progress. The quantisers round nothing at first, then more and more.
ROUNDING_FROM = 0.05
ROUNDING_OVER = 0.05
REVIVE_UNTIL = 0.85

REVIVE_STEPS = 5
REFRESH_STEPS = 400
LOG_STEPS_ON_GPU = 200
LOG_STEPS_ON_CPU = 20
CAPTURE_WARM_UP_STEPS = 3

USAGE_DECAY = 0.2  # weight of the newest batch in the running use of codebook entries
RARELY_USED = 0.05  # of the mean use: such entries restart at current latents
COLLAPSED_COSINE = 0.9995  # of most entries with their nearest; the shipped codebooks have up to 0.9985
RESTART_GAIN = 0.1  # of a codebook that begins anew in a codec that can do without it

FIGURES = ("mel", "commit", "book", "phone", "D", "adv", "fm", "grad")


PART = "codec"  # of the training
WEIGHTS_FILE = "codec.safetensors"
TRAINING_WEIGHTS_FILE = "codec_training.safetensors"  # of what only the training needs


@dataclass(frozen=True)
class Settings:
    """What the options of train_voice.py say about the loop."""

    batch: int
    crop_frames: int
    learning_rate: float
    adversarial_from: float  # progress
    save_every: float  # seconds
    graphs: bool  # CUDA graphs


def _set_rate(optimiser: torch.optim.Optimizer, rate: float) -> None:
    """In place where the rate is a tensor, which a CUDA graph reads by its address."""
    for group in optimiser.param_groups:
        if torch.is_tensor(group["lr"]):
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate


class CodebookReviver:
    """Restarts rarely used codebook entries at random current latents."""

    def __init__(self, codec: Codec, device: str):
        self._codebooks = [quantizer.codebook.weight for quantizer in codec.quantizer.codebooks()]
        self._usage = [torch.ones(len(weight), device=device) for weight in self._codebooks]

    @torch.no_grad()
    def revive(self, codes: torch.Tensor, latents: list[torch.Tensor]) -> None:
        """codes [B, K, N] and the latents before rounding, K times [B, codebook dim, N], of one batch."""
        for k, (weight, usage) in enumerate(zip(self._codebooks, self._usage)):
            entries, used = len(weight), codes[:, k].flatten()
            counts = torch.zeros(entries, device=weight.device)
            counts.scatter_add_(0, used, torch.ones(len(used), device=weight.device))
            usage.lerp_(counts, USAGE_DECAY)
            rare = usage < RARELY_USED * usage.mean()
            candidates = latents[k].transpose(1, 2).flatten(0, 1).float()
            chosen = candidates[torch.randint(0, len(candidates), (entries,), device=weight.device)]
            weight.copy_(torch.where(rare[:, None], chosen, weight))
            usage.copy_(torch.where(rare, usage.mean(), usage))


@torch.no_grad()
def restart_collapsed(codec: Codec) -> None:
    """Begins anew, as good as silent, each quantiser whose entries are nearly parallel: it says nothing."""
    for k, quantizer in enumerate(codec.quantizer.codebooks()):
        directions = F.normalize(quantizer.codebook.weight.double(), dim=1)
        nearest = (directions @ directions.t()).fill_diagonal_(-1).amax(1)
        if nearest.median() < COLLAPSED_COSINE:
            continue
        cosine = f"median nearest cosine {nearest.median():.5f}"
        print(f"codebook {k} has collapsed ({cosine}): begins anew", flush=True)
        for module in (quantizer.in_proj, quantizer.codebook, quantizer.out_proj):
            module.reset_parameters()
        quantizer.in_proj.bias.zero_()
        quantizer.out_proj.bias.zero_()
        quantizer.out_proj.weight.mul_(RESTART_GAIN)


class CodecTrainer:
    """One training run.

    The batch, the learning rates, the rounding and the figures live in tensors that are only changed in
    place: the CUDA graph of a step reads and writes them by address.
    """

    def __init__(self, config: dict[str, Any], device: str, settings: Settings):
        self.codec = Codec(config).to(device)
        self._mel_loss = MultiScaleMelLoss().to(device)
        self._discriminators = Discriminators().to(device)
        # For training only: a linear phone classifier ties the first codebook to the spoken sounds.
        labels_per_frame = FRAME_SAMPLES // LABEL_SAMPLES
        self._phone_head = nn.Linear(config["latent_dim"], labels_per_frame * PHONE_COUNT).to(device)
        self._device, self._on_gpu, self._settings = device, device == "cuda", settings
        self._codebooks = config["n_codebooks"] + 1
        self._crop = settings.crop_frames * self.codec.frame_samples
        self._judged = JUDGED_FRAMES * self.codec.frame_samples
        self._parameters = [*self.codec.parameters(), *self._phone_head.parameters()]
        self._judges_parameters = list(self._discriminators.parameters())
        self._optimiser = self._adam(self._parameters, weight_decay=1e-3)
        self._judges_optimiser = self._adam(self._judges_parameters, weight_decay=1e-2)
        self._rounding = torch.zeros((), device=device)
        self.codec.quantizer.set_rounding(self._rounding)
        self._figures = torch.zeros(len(FIGURES), device=device)
        self._reviver = CodebookReviver(self.codec, device)
        self._waves = torch.zeros(settings.batch, 1, self._crop, device=device)
        self._labels = torch.zeros(
            settings.batch, self._crop // LABEL_SAMPLES, dtype=torch.long, device=device
        )
        self._codes: torch.Tensor | None = None  # of the last step, as are the latents
        self._latents: list[torch.Tensor] = []
        self._adversarial = False
        self._run_step: Callable[[], None] = self._step

    def _adam(self, parameters: list[nn.Parameter], weight_decay: float) -> torch.optim.AdamW:
        on_gpu = {"fused": True, "capturable": True} if self._on_gpu else {}
        rate = torch.zeros((), device=self._device) if self._on_gpu else 0.0
        return torch.optim.AdamW(parameters, lr=rate, betas=(0.8, 0.99), weight_decay=weight_decay, **on_gpu)

    def parameter_counts(self) -> tuple[int, int]:
        """Of the codec and of the discriminators."""
        codec = sum(parameter.numel() for parameter in self.codec.parameters())
        return codec, sum(parameter.numel() for parameter in self._judges_parameters)

    def _autocast(self) -> contextlib.AbstractContextManager:
        return torch.autocast(self._device, dtype=torch.bfloat16, enabled=self._on_gpu, cache_enabled=False)

    def _record(self, **figures: torch.Tensor) -> None:
        for name, value in figures.items():
            self._figures[FIGURES.index(name)].copy_(value.detach())

    def _active_codebooks(self) -> torch.Tensor:
        """How many residual codebooks each item uses, [B]."""
        batch, most = self._settings.batch, self._codebooks
        fewer = torch.rand(batch, device=self._device) < FEWER_CODEBOOKS_SHARE
        random_count = torch.randint(0, most, (batch,), device=self._device)
        return torch.where(fewer, random_count, torch.full((batch,), most, device=self._device))

    def _forward(self) -> tuple[QuantizerOutput, torch.Tensor, torch.Tensor]:
        """What the quantiser makes of the batch, the decoded waves, and the phone logits of the labels."""
        with self._autocast():
            active = self._active_codebooks()
            quantized = self.codec.quantizer(self.codec.encoder(self._waves), active)
            decoded = self.codec.decoder(self.codec.quantizer.expand(quantized.quantized)).float()
            logits = self._phone_head(quantized.semantic.transpose(1, 2)).float()
        return quantized, decoded, logits.view(len(decoded), -1, PHONE_COUNT)

    def _train_discriminators(self, real: torch.Tensor, decoded: torch.Tensor) -> None:
        """They should say 1 to the real waves and 0 to the decoded ones."""
        count = len(real)
        with self._autocast():
            outputs = self._discriminators(torch.cat([real, decoded.detach()]))
        loss = sum(
            (layers[-1][:count].float() - 1).pow(2).mean() + layers[-1][count:].float().pow(2).mean()
            for layers in outputs
        )
        self._judges_optimiser.zero_grad(set_to_none=True)
        loss.backward(inputs=self._judges_parameters)
        nn.utils.clip_grad_norm_(self._judges_parameters, MAX_DISCRIMINATOR_GRADIENT_NORM)
        self._judges_optimiser.step()
        self._record(D=loss)

    def _adversarial_losses(self, decoded: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Trains the discriminators. Returns the losses of their verdict and of their features."""
        length, judged, count = self._crop, self._judged, self._settings.batch
        start = torch.randint(0, length - judged, (count, 1, 1), device=self._device)
        crop = start + torch.arange(judged, device=self._device)
        real, decoded = self._waves.gather(2, crop), decoded.gather(2, crop)
        self._train_discriminators(real, decoded)
        with self._autocast():
            outputs = self._discriminators(torch.cat([real, decoded]))
        verdict = sum((layers[-1][count:].float() - 1).pow(2).mean() for layers in outputs)
        features = sum(
            (layer[count:] - layer[:count].detach()).abs().mean().float()
            for layers in outputs
            for layer in layers[:-1]
        )
        self._record(adv=verdict, fm=features)
        return verdict, features

    def _step(self, adversarial: bool = False) -> None:
        """One update on the current batch."""
        quantized, decoded, logits = self._forward()
        phone_loss = F.cross_entropy(logits.flatten(0, 1), self._labels.flatten())
        mel_loss = self._mel_loss(decoded[:, 0], self._waves[:, 0])
        commitment, codebook = quantized.commitment_loss, quantized.codebook_loss
        self._codes, self._latents = quantized.codes, quantized.latents
        loss = MEL_WEIGHT * mel_loss + codebook + COMMITMENT_WEIGHT * commitment + PHONE_WEIGHT * phone_loss
        if adversarial:
            verdict, features = self._adversarial_losses(decoded)
            loss = loss + verdict + FEATURE_WEIGHT * features
        self._optimiser.zero_grad(set_to_none=True)
        loss.backward(inputs=self._parameters)
        gradient_norm = nn.utils.clip_grad_norm_(self._parameters, MAX_GRADIENT_NORM)
        self._optimiser.step()
        self._record(mel=mel_loss, commit=commitment, book=codebook, phone=phone_loss, grad=gradient_norm)

    def _step_function(self, adversarial: bool) -> Callable[[], None]:
        """The whole step as one replayable CUDA graph if wanted and possible, else as it is."""
        eager = functools.partial(self._step, adversarial)
        if not self._settings.graphs:
            return eager
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(CAPTURE_WARM_UP_STEPS):
                self._step(adversarial)
        torch.cuda.current_stream().wait_stream(stream)
        try:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                self._step(adversarial)
            return graph.replay
        except RuntimeError as error:
            print("graph capture failed, going on without:", repr(error)[:300], flush=True)
            torch.cuda.synchronize()
            return eager

    def _schedule(self, step: int, progress: float, adversarial: bool) -> None:
        """Sets the learning rates and the rounding: warm-up, then half a cosine."""
        cosine = 0.5 + 0.5 * math.cos(math.pi * progress)
        rate = self._settings.learning_rate * min(1, (step + 1) / WARM_UP_STEPS) * cosine + RATE_FLOOR
        _set_rate(self._optimiser, rate * ADVERSARIAL_RATE if adversarial else rate)
        _set_rate(self._judges_optimiser, rate * DISCRIMINATOR_RATE)
        self._rounding.fill_(min(1.0, max(0.0, (progress - ROUNDING_FROM) / ROUNDING_OVER)))

    def _draw_batch(self, pool: ShardPool) -> None:
        waves, labels = pool.batch(self._settings.batch, self._crop)
        self._waves.copy_(waves)
        self._labels.copy_(labels)

    def _modules(self) -> dict[str, nn.Module]:
        return {"codec": self.codec, "phones": self._phone_head, "judges": self._discriminators}

    def resume(self, stretch: Stretch) -> None:
        """Goes on from this machine's own state, or from an earlier stretch's weights, or from nothing."""
        state = stretch.load_state(PART, self._device)
        if state:
            for name, module in self._modules().items():
                module.load_state_dict(state[name])
            self._optimiser.load_state_dict(state["optimiser"])
            self._judges_optimiser.load_state_dict(state["judges_optimiser"])
            return
        if not stretch.progress(PART):
            return
        import_codec(self.codec, load_safetensors(stretch.out / WEIGHTS_FILE))
        restart_collapsed(self.codec)
        if not (stretch.out / TRAINING_WEIGHTS_FILE).exists():
            return  # a finished voice has none: discriminators and phone classifier begin anew
        weights = load_safetensors(stretch.out / TRAINING_WEIGHTS_FILE)
        for name in ("phones", "judges"):
            prefix = name + "."
            own = {
                key.removeprefix(prefix): w.float() for key, w in weights.items() if key.startswith(prefix)
            }
            self._modules()[name].load_state_dict(own)

    def begin(self, pool: ShardPool, progress: float) -> None:
        """Draws a first batch and makes the step."""
        self._draw_batch(pool)
        if progress >= self._settings.adversarial_from:
            return self._begin_adversarial()
        _set_rate(self._optimiser, CAPTURE_RATE)
        self._run_step = self._step_function(adversarial=False)

    def _begin_adversarial(self) -> None:
        _set_rate(self._optimiser, CAPTURE_RATE)
        _set_rate(self._judges_optimiser, DISCRIMINATOR_CAPTURE_RATE)
        self._run_step, self._adversarial = self._step_function(adversarial=True), True
        print("adversarial from here", flush=True)

    def train(self, pool: ShardPool, budget: Budget, stretch: Stretch) -> float:
        """Trains until the stretch is over; saves meanwhile. Returns the progress."""
        log_steps = LOG_STEPS_ON_GPU if self._on_gpu else LOG_STEPS_ON_CPU
        step, clock, saved = 0, StepClock(), budget.elapsed()
        while not budget.is_over(step):
            progress = budget.progress(step)
            if not self._adversarial and progress >= self._settings.adversarial_from:
                self._begin_adversarial()
            self._schedule(step, progress, self._adversarial)
            self._draw_batch(pool)
            self._run_step()
            step += 1
            if step % REVIVE_STEPS == 0 and progress < REVIVE_UNTIL:
                self._reviver.revive(self._codes, self._latents)
            if step % REFRESH_STEPS == 0:
                pool.refresh()
            if step % log_steps == 0:
                self._report(step, budget.elapsed(), clock.milliseconds_per_step(step))
                if budget.elapsed() - saved > self._settings.save_every:
                    saved = budget.elapsed()
                    self.save(stretch, progress)
        self.save(stretch, budget.progress(step))
        return budget.progress(step)

    def _report(self, step: int, elapsed: float, milliseconds: float) -> None:
        """Prints the figures of the last step and how many entries of each codebook its batch used."""
        figures = dict(zip(FIGURES, self._figures.tolist()))
        used = [len(codes.unique()) for codes in self._codes.unbind(1)]
        listed = " ".join(f"{name} {value:.{2 if name == 'grad' else 3}f}" for name, value in figures.items())
        print(
            f"step {step} {elapsed:.0f}s {milliseconds:.1f} ms/step {listed} codes/batch {used}", flush=True
        )
        if not math.isfinite(figures["mel"]):
            raise InputError(f"step {step}: the mel loss is {figures['mel']}; try a lower --lr")

    def save(self, stretch: Stretch, progress: float) -> None:
        """Writes the weights, and this machine's state."""
        weights = export_codec(self.codec)
        replace_file(
            stretch.out / WEIGHTS_FILE, lambda path: save_safetensors(weights, path, {"format": "pt"})
        )
        training = {
            f"{name}.{key}": tensor.half()
            for name in ("phones", "judges")
            for key, tensor in self._modules()[name].state_dict().items()
        }
        replace_file(stretch.out / TRAINING_WEIGHTS_FILE, lambda path: save_safetensors(training, path))
        state: dict[str, Any] = {name: module.state_dict() for name, module in self._modules().items()}
        state |= {"optimiser": self._optimiser.state_dict(), "progress": progress}
        stretch.save_state(PART, state | {"judges_optimiser": self._judges_optimiser.state_dict()})
        stretch.set_progress(PART, progress)
