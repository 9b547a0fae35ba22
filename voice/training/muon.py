"""Muon: momentum with orthogonalised updates, for the matrices of transformer blocks."""
from collections.abc import Sequence

import torch
from torch import nn

# Coefficients of the quintic iteration that drives all singular values towards one; few steps suffice.
NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)
NEWTON_SCHULZ_STEPS = 5
UPDATE_RMS = 0.2  # of an update, so that AdamW's learning rate serves both optimisers


def _orthogonalised(matrices: torch.Tensor) -> torch.Tensor:
    """[n, rows, columns] -> the nearest semi-orthogonal matrices, about."""
    rows, columns = matrices.shape[1:]
    x = matrices.bfloat16() if matrices.is_cuda else matrices
    x = x.transpose(1, 2) if rows > columns else x
    x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
    first, third, fifth = NEWTON_SCHULZ
    for _ in range(NEWTON_SCHULZ_STEPS):
        gram = x @ x.transpose(1, 2)
        x = first * x + (third * gram + fifth * gram @ gram) @ x
    return x.transpose(1, 2) if rows > columns else x


class Muon:
    """Matrices of equal shape are updated in one batch."""

    def __init__(self, parameters: Sequence[nn.Parameter], momentum: float = 0.95):
        by_shape: dict[tuple[int, ...], list[nn.Parameter]] = {}
        for parameter in parameters:
            by_shape.setdefault(tuple(parameter.shape), []).append(parameter)
        self._momentum = momentum
        self._groups = [
            (group, torch.zeros(len(group), *shape, device=group[0].device))
            for shape, group in by_shape.items()
        ]

    def state(self) -> list[torch.Tensor]:
        """The momenta."""
        return [momentum for _, momentum in self._groups]

    def load_state(self, state: list[torch.Tensor]) -> None:
        """What state() gave."""
        for (_, momentum), loaded in zip(self._groups, state):
            momentum.copy_(loaded)

    @torch.no_grad()
    def step(self, learning_rate: float, weight_decay: float = 0.0) -> None:
        """Applies the gradients of all parameters; weight decay as in AdamW."""
        for group, momentum in self._groups:
            gradient = torch.stack([parameter.grad for parameter in group])
            momentum.lerp_(gradient, 1 - self._momentum)
            update = _orthogonalised(gradient.lerp(momentum, self._momentum))
            scale = UPDATE_RMS * max(gradient.shape[1:]) ** 0.5 * learning_rate
            torch._foreach_mul_(group, 1 - learning_rate * weight_decay)
            torch._foreach_sub_(group, list((update.float() * scale).unbind(0)))
