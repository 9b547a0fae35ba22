"""Autoregressive generation with a DualAR model: batched, with a key-value cache.

B: batch, T: positions, K: codebooks.
"""
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from dual_ar import DualAR

PENALTY_WINDOW = 16  # frames whose tokens and codes the repetition penalty looks at
END_CHECK_STEPS = 8  # asking whether all are done waits for the device, so it is asked this seldom


@dataclass(frozen=True)
class Sampling:
    """How a token is chosen from its logits."""

    temperature: float = 0.0  # 0: always the likeliest
    top_p: float = 0.7
    penalty: float = 1.0  # of what occurred in the last frames; 1: none
    generator: torch.Generator | None = None

    def choose(self, logits: torch.Tensor, recent: torch.Tensor | None) -> torch.Tensor:
        """logits [B, size] -> [B]. recent [B, n]: what was chosen before; None for the first frame."""
        logits = logits.float()
        if self.penalty != 1.0 and recent is not None:
            score = logits.gather(-1, recent)
            score = torch.where(score < 0, score * self.penalty, score / self.penalty)
            logits = logits.scatter(-1, recent, score)
        if self.temperature <= 0:
            return logits.argmax(-1)
        ordered, index = logits.sort(-1, descending=True)
        cut = ordered.softmax(-1).cumsum(-1) > self.top_p
        cut[:, 0] = False
        logits = logits.masked_fill(cut.scatter(-1, index, cut), float("-inf")) / self.temperature
        return torch.multinomial(logits.softmax(-1), 1, generator=self.generator)[:, 0]


GREEDY = Sampling()


def _left_padded(prompts: Sequence[torch.Tensor], device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows [B, T, 1+K], and which are real [B, T]. Rotary positions are relative: padding does no harm."""
    length = max(len(prompt) for prompt in prompts)
    rows = torch.zeros(len(prompts), length, prompts[0].shape[1], dtype=torch.long, device=device)
    real = torch.zeros(len(prompts), length, dtype=torch.bool, device=device)
    for i, prompt in enumerate(prompts):
        rows[i, length - len(prompt) :] = prompt.to(device)
        real[i, length - len(prompt) :] = True
    return rows, real


def _prompt_mask(real: torch.Tensor) -> torch.Tensor:
    """[B, 1, T, T], causal, without the padding; each position sees itself, so that no row is empty."""
    length = real.shape[1]
    causal = torch.ones(length, length, dtype=torch.bool, device=real.device).tril()
    return (causal & real[:, None, None]) | torch.eye(length, dtype=torch.bool, device=real.device)


def _next_frame(model: DualAR, hidden: torch.Tensor, history: torch.Tensor | None, sampling: Sampling):
    """The token [B] and codes [B, K] after hidden states [B, dim]. history: the last frames [B, n, 1+K]."""
    recent = [None] * (1 + model.codebooks) if history is None else history.unbind(-1)
    token = sampling.choose(model.head(hidden), recent[0])
    codes = (token - model.semantic_begin).clamp(0, model.codebook_size - 1)[:, None]
    for k in range(1, model.codebooks):
        code = sampling.choose(model.fast(hidden, codes)[:, -1], recent[k + 1])
        codes = torch.cat([codes, code[:, None]], 1)
    return token, codes


@torch.no_grad()
def generate(
    model: DualAR, prompts: Sequence[torch.Tensor], end_id: int, max_frames: int, sampling: Sampling = GREEDY
) -> tuple[list[torch.Tensor], list[bool]]:
    """Prompts [T, 1+K] -> for each its codes [n, K], and whether it ended within max_frames."""
    device, dtype = model.embeddings.weight.device, model.embeddings.weight.dtype
    rows, real = _left_padded(prompts, device)
    batch, prompt_length, width = rows.shape
    shape = (2, batch, model.config["n_local_heads"], prompt_length + max_frames, model.config["head_dim"])
    cache = [torch.zeros(*shape, device=device, dtype=dtype) for _ in model.layers]
    visible = torch.cat([real, torch.ones(batch, max_frames, dtype=torch.bool, device=device)], 1)
    mask, position = _prompt_mask(real), 0
    history = torch.zeros(batch, PENALTY_WINDOW, width, dtype=torch.long, device=device)
    done = torch.zeros(batch, dtype=torch.bool, device=device)
    frames = []
    for step in range(max_frames):
        hidden = model.slow(rows, mask, cache, position)[:, -1]
        position += rows.shape[1]
        token, codes = _next_frame(model, hidden, history if frames else None, sampling)
        done |= token == end_id
        frames.append(torch.where(done[:, None], -1, codes))
        rows = torch.cat([token[:, None], codes], 1)[:, None]
        history = torch.cat([history[:, 1:], rows], 1)
        mask = visible[:, None, None, : position + 1]
        if step % END_CHECK_STEPS == END_CHECK_STEPS - 1 and bool(done.all()):
            break
    stacked = torch.stack(frames, 1)
    return [codes[codes[:, 0] >= 0] for codes in stacked], done.tolist()
