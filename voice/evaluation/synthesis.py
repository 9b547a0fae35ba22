"""What is evaluated: something that speaks texts and passes sound through its codec."""
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np


class Mode(NamedTuple):
    """How tokens are drawn; temperature 0: always the likeliest."""

    temperature: float = 0.0
    top_p: float = 0.7
    penalty: float = 1.0  # of what occurred in the last frames; 1: none


MODES = {"greedy": Mode(), "t0.7": Mode(0.7, 0.7, 1.1), "t0.8": Mode(0.8, 0.8, 1.1)}
SEED = 0  # of all drawing


class Reference(NamedTuple):
    """A clip of a voice to follow and its words."""

    text: str
    samples: np.ndarray  # int16


Guide = Reference | str | None  # a clip, the name of a voice, or the model's own voice


class Spoken(NamedTuple):
    """One spoken text."""

    wave: np.ndarray  # float32 [samples]
    ended: bool  # by itself, not by the limit of frames


class Synthesiser(Protocol):
    """A voice at work."""

    def speak(self, texts: Sequence[str], mode: Mode, guides: Sequence[Guide] = ()) -> list[Spoken]:
        """All texts in one batch; guides: one for each text, or none at all."""

    def resynthesise(self, waves: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Float waves through the codec and back."""
