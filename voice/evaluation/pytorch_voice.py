"""The voice as the PyTorch code of the training computes it, in fp32."""
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

import training_path  # noqa: F401
from checkpoints import load_voice
from generation import Sampling, generate
from inputs import InputError
from pcm import INT16_SCALE
from prompt import END_ID, build_prompt
from synthesis import SEED, Guide, Mode, Reference, Spoken

FAILED_SAMPLES = 2048  # of silence, which stand for a sentence without a single frame


class PyTorchVoice:
    """Knows no normaliser: its texts must be as they are spoken."""

    def __init__(self, folder: Path, max_frames: int):
        self._device = "cuda" if torch.cuda.is_available() else "cpu"
        self._codec, self._dual_ar = load_voice(folder, self._device)
        self._max_frames = max_frames

    @torch.no_grad()
    def _encode(self, wave: np.ndarray) -> torch.Tensor:
        """[samples] -> codes [frames, codebooks]."""
        return self._codec.encode(torch.tensor(wave, device=self._device).float()[None, None])[0].t()

    @torch.no_grad()
    def _decode(self, codes: torch.Tensor) -> np.ndarray:
        """Codes [frames, codebooks] -> [samples]."""
        if not len(codes):
            return np.zeros(FAILED_SAMPLES, np.float32)
        return self._codec.decode(codes.t()[None])[0, 0].cpu().numpy()

    def _prompt(self, text: str, guide: Guide) -> torch.Tensor:
        if isinstance(guide, str):
            raise InputError("the PyTorch code knows no named voices")
        references = []
        if isinstance(guide, Reference):
            references = [(guide.text, self._encode(guide.samples / np.float32(INT16_SCALE)))]
        return build_prompt(text, self._dual_ar.codebooks, references)

    def speak(self, texts: Sequence[str], mode: Mode, guides: Sequence[Guide] = ()) -> list[Spoken]:
        generator = torch.Generator(device=self._device)
        generator.manual_seed(SEED)
        prompts = [self._prompt(text, guide) for text, guide in zip(texts, guides or [None] * len(texts))]
        sampling = Sampling(**mode._asdict(), generator=generator)
        codes, ended = generate(self._dual_ar, prompts, END_ID, self._max_frames, sampling)
        return [Spoken(self._decode(of_text), bool(done)) for of_text, done in zip(codes, ended)]

    def resynthesise(self, waves: Sequence[np.ndarray]) -> list[np.ndarray]:
        return [self._decode(self._encode(wave)) for wave in waves]
