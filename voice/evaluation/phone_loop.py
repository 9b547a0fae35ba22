"""Phone errors by pocketsphinx: any phone may follow any other, as often as English has it so.

It knows nothing of the voice and mishears about three of ten of the teacher's phones. So what it tells is how two
ways of speaking the same sentences differ.
"""
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import training_path  # noqa: F401
from flite import PHONE_IDS
from pcm import to_int16
from word_errors import MODEL, WordListener

# Phones on their own instead of those between two others: as good here, and six times as fast.
PHONE_SEARCH = ["-allphone", str(MODEL / "en-us-phone.lm.bin"), "-lw", "2.0", "-allphone_ci", "yes"]
# The teacher's phones that the recogniser has no names for, and what it calls them.
MERGED = {PHONE_IDS["ax"]: PHONE_IDS["ah"], PHONE_IDS["nx"]: PHONE_IDS["n"]}


class PhoneLoop:
    """Hears phones; remembers as WordListener does, beside its file."""

    def __init__(self, memory: Path):
        self._listener = WordListener(memory.with_stem(memory.stem + "_phones"), PHONE_SEARCH)

    def expected(self, phones: Sequence[int]) -> list[int]:
        """The teacher's phones under the recogniser's names."""
        return [MERGED.get(phone, phone) for phone in phones]

    def hear(self, waves: Sequence[np.ndarray]) -> list[list[int]]:
        """The phones of each float wave; silence and noise are none."""
        heard = self._listener.hear([to_int16(wave) for wave in waves])
        return [[PHONE_IDS[p] for p in text.lower().split() if p != "sil" and p in PHONE_IDS] for text in heard]
