"""Speech synthesis by flite through its C library (Debian: libflite1), with the times of the phones.

Carnegie Mellon University made flite's voices from the CMU Arctic recordings; see ../NOTICE.flite.
"""
import ctypes
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from inputs import InputError
from pcm import SAMPLE_RATE

VOICES = ("rms", "slt", "awb", "kal16")

PHONES = (
    "pau aa ae ah ao aw ax ay b ch d dh eh er ey f g hh ih iy jh k l m n ng nx ow oy p r s sh t th uh uw v w"
    " y z zh"
).split()
PHONE_IDS = {phone: i for i, phone in enumerate(PHONES)}
SILENCE_ID = 0
OTHER_PHONE_ID = len(PHONES)  # any name that is not in the list
PHONE_COUNT = len(PHONES) + 1

_VOICE_FEATURES_OFFSET = ctypes.sizeof(ctypes.c_void_p)  # cst_voice: the name, then a pointer to the features


class _Wave(ctypes.Structure):
    """cst_wave of flite's C interface."""

    _fields_ = [
        ("type", ctypes.c_char_p),
        ("sample_rate", ctypes.c_int),
        ("num_samples", ctypes.c_int),
        ("num_channels", ctypes.c_int),
        ("samples", ctypes.POINTER(ctypes.c_short)),
    ]


_POINTER = ctypes.c_void_p
_SIGNATURES = {
    "flite_synth_text": (_POINTER, [ctypes.c_char_p, _POINTER]),
    "utt_wave": (ctypes.POINTER(_Wave), [_POINTER]),
    "utt_relation": (_POINTER, [_POINTER, ctypes.c_char_p]),
    "relation_head": (_POINTER, [_POINTER]),
    "item_next": (_POINTER, [_POINTER]),
    "item_feat_string": (ctypes.c_char_p, [_POINTER, ctypes.c_char_p]),
    "item_feat_float": (ctypes.c_float, [_POINTER, ctypes.c_char_p]),
    "delete_utterance": (None, [_POINTER]),
    "feat_set_float": (None, [_POINTER, _POINTER, ctypes.c_float]),
}


@dataclass(frozen=True)
class Utterance:
    """What flite said: int16 values as float32, 16 kHz, and each phone's id and end in samples, in order."""

    samples: np.ndarray
    phones: list[tuple[int, float]]


def _load(name: str) -> ctypes.CDLL:
    """The libraries of flite refer to each other's symbols, hence RTLD_GLOBAL."""
    try:
        return ctypes.CDLL(f"lib{name}.so.1", ctypes.RTLD_GLOBAL)
    except OSError as error:
        raise InputError(
            f"cannot load lib{name}.so.1 ({error}): install flite (Debian: libflite1)"
        ) from error


class Flite:
    """flite with some of its voices.

    Its excitation noise comes from one random state of the process, so the samples of an utterance depend a
    little on how many were spoken before.
    """

    def __init__(self, voices: Sequence[str] = VOICES):
        self._library = _load("flite")
        _load("flite_usenglish")
        _load("flite_cmulex")
        self._library.flite_init()
        self._voices = {}
        for voice in voices:
            register = getattr(_load(f"flite_cmu_us_{voice}"), f"register_cmu_us_{voice}")
            register.restype = _POINTER
            self._voices[voice] = register(None)
        for name, (result, arguments) in _SIGNATURES.items():
            function = getattr(self._library, name)
            function.restype = result
            function.argtypes = arguments
        # flite keeps the pointers to these names, so they live as long as the voices.
        self._duration_key = ctypes.create_string_buffer(b"duration_stretch")
        self._pitch_key = ctypes.create_string_buffer(b"f0_shift")

    def synthesise(self, text: str, voice: str, stretch: float = 1.0, pitch: float = 1.0) -> Utterance:
        """Speaks the text; stretch multiplies all durations, pitch the fundamental frequency."""
        library, handle = self._library, self._voices[voice]
        self._set_prosody(handle, stretch, pitch)
        utterance = library.flite_synth_text(text.replace("\u2019", "'").encode(), handle)
        wave = library.utt_wave(utterance).contents
        if wave.sample_rate != SAMPLE_RATE:
            raise InputError(f"flite voice {voice}: expected {SAMPLE_RATE} Hz, got {wave.sample_rate} Hz")
        samples = np.ctypeslib.as_array(wave.samples, (wave.num_samples,)).astype(np.float32)
        phones = self._phones(utterance)
        library.delete_utterance(utterance)  # frees the wave, too
        return Utterance(samples, phones)

    def _set_prosody(self, handle: int, stretch: float, pitch: float) -> None:
        features = ctypes.cast(handle + _VOICE_FEATURES_OFFSET, ctypes.POINTER(_POINTER))[0]
        for key, value in ((self._duration_key, stretch), (self._pitch_key, pitch)):
            self._library.feat_set_float(features, ctypes.addressof(key), value)

    def _phones(self, utterance: int) -> list[tuple[int, float]]:
        library, phones = self._library, []
        item = library.relation_head(library.utt_relation(utterance, b"Segment"))
        while item:
            name = library.item_feat_string(item, b"name").decode()
            end = library.item_feat_float(item, b"end") * SAMPLE_RATE
            phones.append((PHONE_IDS.get(name, OTHER_PHONE_ID), end))
            item = library.item_next(item)
        return phones
