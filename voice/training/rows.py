"""Training rows of the DualAR model: several utterances of one speaker, one after the other."""
from typing import NamedTuple

import numpy as np
import torch

from encoded_speech import EncodedSpeech
from prompt import END_ID, PAD_ID, SEMANTIC_BEGIN, SPEAKER_TAG, START_ID


class Rows(NamedTuple):
    """Token rows, one token longer than the model's input, and which of their positions the loss covers."""

    tokens: torch.Tensor  # int16 [rows, length + 1, 1 + codebooks]
    supervised: torch.Tensor  # bool [rows, length + 1]

    def to(self, device: str) -> "Rows":
        """The same on a device."""
        return Rows(self.tokens.to(device), self.supervised.to(device))


class _Plan(NamedTuple):
    is_default: bool
    utterances: list[int]


def _plan_rows(speech: EncodedSpeech, length: int, rng: np.random.RandomState) -> list[_Plan]:
    """Packs the utterances of each speaker in random order; a row of another speaker needs two at least."""
    default_speaker = -1
    by_speaker: dict[int, list[int]] = {}
    for i, group in enumerate(speech.groups):
        by_speaker.setdefault(default_speaker if speech.is_default[i] else group, []).append(i)
    sizes = [
        len(SPEAKER_TAG) + len(text.encode()) + len(codes) + 1
        for text, codes in zip(speech.texts, speech.codes)
    ]
    plans = []
    for speaker, indices in by_speaker.items():
        is_default = speaker == default_speaker
        current, filled = [], 1
        for i in [*rng.permutation(indices), None]:
            if i is None or filled + sizes[i] > length + 1:
                if len(current) > (0 if is_default else 1):
                    plans.append(_Plan(is_default, current))
                current, filled = [], 1
            if i is not None and sizes[i] <= length:
                current.append(i)
                filled += sizes[i]
    rng.shuffle(plans)
    return plans


def _write_utterance(tokens: np.ndarray, begin: int, text: str, codes: np.ndarray) -> tuple[int, int]:
    """Writes speaker tag, text, frames and end token. Returns where the frames begin and where all ends."""
    spelled = np.frombuffer(text.encode(), np.uint8)
    text_begin = begin + len(SPEAKER_TAG)
    frames_begin = text_begin + len(spelled)
    frames_end = frames_begin + len(codes)
    tokens[begin:text_begin, 0] = SPEAKER_TAG
    tokens[text_begin:frames_begin, 0] = spelled
    tokens[frames_begin:frames_end, 0] = codes[:, 0] + SEMANTIC_BEGIN
    tokens[frames_begin:frames_end, 1:] = codes
    tokens[frames_end, 0] = END_ID
    return frames_begin, frames_end + 1


def build_rows(speech: EncodedSpeech, length: int, seed: int) -> Rows:
    """Rows of length + 1 tokens.

    The loss covers the frames and the end of every utterance of the default speaker, and for other speakers
    all but the first one, which is the reference: so an empty prompt gives the default speaker.
    """
    plans = _plan_rows(speech, length, np.random.RandomState(seed))
    codebooks = speech.codec_config["n_codebooks"] + 1
    tokens = np.zeros((len(plans), length + 1, 1 + codebooks), np.int16)
    tokens[:, :, 0] = PAD_ID
    supervised = np.zeros((len(plans), length + 1), bool)
    for row, plan in enumerate(plans):
        tokens[row, 0, 0] = START_ID
        position = 1
        for place, i in enumerate(plan.utterances):
            begin, position = _write_utterance(tokens[row], position, speech.texts[i], speech.codes[i])
            if plan.is_default or place > 0:
                supervised[row, begin:position] = True
    return Rows(torch.from_numpy(tokens), torch.from_numpy(supervised))
