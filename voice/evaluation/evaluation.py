"""The measures of a voice on held-out sentences, against the teacher's renderings."""
import json
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

import training_path  # noqa: F401  (before the modules of ../training)
import reference_clips
from measures import collapse, edit_distance, median_pitch, mel_cepstral_distortion
from musts import MAX_CLONE_DISTORTION_ABOVE_CODEC, MAX_PITCH_ERROR
from pcm import INT16_SCALE, SAMPLE_RATE, to_int16
from synthesis import MODES, Reference, Synthesiser
from teacher import Speaker, Teacher, random_speaker
from word_errors import WordListener, word_errors, words

SPEAKER_SEED = 99  # of the speakers to clone: none of the training data's
CLONED_SENTENCES = 4  # spoken by each of them
NAMED_SENTENCES = 8  # spoken by each named voice
ALONE = 10  # sentences spoken one at a time, for the speed of a single request

Figures = dict[str, Any]


class PhoneEar(Protocol):
    """What measures phone errors: recogniser.PhoneListener, phone_loop.PhoneLoop."""

    def expected(self, phones: Sequence[int]) -> list[int]:
        """The teacher's phones as it would hear them."""

    def hear(self, waves: Sequence[np.ndarray]) -> list[list[int]]:
        """The phones of each float wave."""


@dataclass
class Sentence:
    """One sentence and the teacher's rendering of its spoken form."""

    text: str  # what the voice is told
    spoken: str  # numbers as words
    has_digits: bool  # as it was written
    set_name: str
    wave: np.ndarray  # float32
    phones: list[int]


def _percent(part: float, whole: float) -> float:
    return round(100 * float(part) / float(whole), 1)


class Evaluation:
    """The teacher's renderings, and the results so far."""

    def __init__(
        self,
        voice: Synthesiser,
        sentences: dict[str, list[str]],
        spoken_form: Callable[[str], str],
        words_ear: WordListener | None,
        phones_ear: PhoneEar | None,
        told_spoken: bool = False,
    ):
        """told_spoken: the voice gets numbers as words, for it has no normaliser of its own."""
        self._voice, self._words_ear, self._phones_ear = voice, words_ear, phones_ear
        self._teacher = Teacher()
        self._sentences: list[Sentence] = []
        for set_name, texts in sentences.items():
            for text in texts:
                spoken = spoken_form(text)
                samples, labels = self._teacher.speak(spoken)
                wave = samples.astype(np.float32) / INT16_SCALE
                said = spoken if told_spoken else text
                self._sentences.append(
                    Sentence(said, spoken, any(map(str.isdigit, text)), set_name, wave, collapse(labels))
                )
        self._targets = [sentence.wave for sentence in self._sentences]
        self.summary: dict[str, Figures] = {}
        self.details: dict[str, list[Figures]] = {}
        self.waves: dict[str, list[np.ndarray]] = {"teacher": self._targets}

    def _record(self, name: str, figures: Figures) -> None:
        self.summary[name] = figures
        print(name, json.dumps(figures), flush=True)

    def _compare(self, name: str, waves: Sequence[np.ndarray]) -> Figures:
        """Word and phone errors and the cepstral distance of one wave for each sentence."""
        return self._totals(self._details(name, self._sentences, waves))

    def _details(self, name: str, sentences: list[Sentence], waves: Sequence[np.ndarray]) -> list[Figures]:
        heard = [""] * len(waves)
        if self._words_ear:
            heard = self._words_ear.hear([to_int16(wave) for wave in waves])
        phones = self._phones_ear.hear(waves) if self._phones_ear else [[]] * len(waves)
        details = self.details[name] = []
        for sentence, wave, text, sounds in zip(sentences, waves, heard, phones):
            detail = {
                "set": sentence.set_name,
                "spoken": sentence.spoken,
                "heard": text,
                "word_errors": word_errors(sentence.spoken, text),
                "words": len(words(sentence.spoken)) if self._words_ear else 0,
                "digits": sentence.has_digits,
                "mcd": round(mel_cepstral_distortion(sentence.wave, wave), 3),
                "ratio": round(len(wave) / len(sentence.wave), 4),
            }
            if self._phones_ear:
                expected = self._phones_ear.expected(sentence.phones)
                detail["phone_errors"] = edit_distance(expected, sounds)
                detail["phones"] = len(expected)
            details.append(detail)
        return details

    def _totals(self, details: list[Figures]) -> Figures:
        figures = {
            "wer": _wer(details),
            "per": None,
            "mcd": round(float(np.mean([d["mcd"] for d in details])), 2),
        }
        if self._phones_ear:
            figures["per"] = _percent(
                sum(d["phone_errors"] for d in details), sum(d["phones"] for d in details)
            )
        for set_name in dict.fromkeys(d["set"] for d in details):
            figures[f"wer, {set_name}"] = _wer([d for d in details if d["set"] == set_name])
        figures["wer, digits"] = _wer([d for d in details if d["digits"]])
        return figures

    def measure_limits(self) -> None:
        """The teacher itself, another sentence, and the teacher after the codec."""
        self._record("teacher", self._compare("teacher", self._targets))
        others = self._targets[1:] + self._targets[:1]
        distances = [mel_cepstral_distortion(target, other) for target, other in zip(self._targets, others)]
        self._record("another sentence", {"mcd": round(float(np.mean(distances)), 2)})
        self.waves["codec"] = self._voice.resynthesise(self._targets)
        self._record("codec", self._compare("codec", self.waves["codec"]))

    def measure_mode(self, name: str) -> None:
        """Text to speech: all sentences in one batch, then some alone."""
        texts = [sentence.text for sentence in self._sentences]
        mode = MODES[name]
        self._voice.speak(texts[:1], mode)  # the first request may take memory
        begun = time.perf_counter()
        spoken = self._voice.speak(texts, mode)
        seconds = time.perf_counter() - begun
        waves = self.waves[name] = [one.wave for one in spoken]
        begun = time.perf_counter()
        alone = [self._voice.speak([text], mode)[0].wave for text in texts[:ALONE]]
        alone_seconds = time.perf_counter() - begun
        ratios = np.array([len(wave) / len(target) for wave, target in zip(waves, self._targets)])
        figures = self._compare(name, waves)
        figures |= {
            "ended": _percent(sum(one.ended for one in spoken), len(spoken)),
            "duration_ratio": round(float(ratios.mean()), 3),
            "ratio_sd": round(float(ratios.std()), 3),
            "speed": round(sum(map(len, waves)) / SAMPLE_RATE / seconds, 2),
            "speed_alone": round(sum(map(len, alone)) / SAMPLE_RATE / alone_seconds, 2),
        }
        self._record(name, figures)

    def _rendered(self, sentence: Sentence, speaker: Speaker) -> np.ndarray:
        return self._teacher.speak(sentence.spoken, speaker)[0]

    def measure_cloning(self, speakers: int) -> None:
        """Some sentences in the voice of each of some unseen speakers, after a reference in that voice.

        Several, since the median pitch of a single sentence depends on the sentence: the teacher's own is not
        always within the bounds of its reference's.
        """
        rng = random.Random(SPEAKER_SEED)
        details = self.details["cloning"] = []
        for i in range(speakers):
            details.append(self._cloned(i, random_speaker(rng)))
            print(details[-1], flush=True)
        self._record("cloning", _cloning_summary(details))

    def _cloned(self, number: int, speaker: Speaker) -> Figures:
        """The pitch, and the distances to the speaker's rendering, to the codec's, to the default's."""
        count = len(self._sentences)
        said = [self._sentences[(7 * number + 5 + 17 * k) % count] for k in range(CLONED_SENTENCES)]
        read = self._sentences[(3 * number + number % 2) % min(40, count)]
        reference = Reference(read.spoken, self._rendered(read, speaker))
        targets = [self._rendered(sentence, speaker).astype(np.float32) / INT16_SCALE for sentence in said]
        spoken = self._voice.speak(
            [sentence.text for sentence in said], MODES["greedy"], [reference] * len(said)
        )
        waves = [one.wave for one in spoken]
        return {
            "speaker": speaker._asdict(),
            "ended": all(one.ended for one in spoken),
            "f0_reference": round(median_pitch(reference.samples / INT16_SCALE), 1),
            "f0_teacher": _pitch(targets),
            "f0": _pitch(waves),
            "mcd": _distortion(targets, waves),
            "mcd_codec": _distortion(targets, self._voice.resynthesise(targets)),
            "mcd_default": _distortion([sentence.wave for sentence in said], waves),
        }

    def measure_named(self) -> None:
        """The voices that ship with the model: pitch as the clip's, errors as the teacher's, timbre."""
        chosen = self._sentences[:: max(1, len(self._sentences) // NAMED_SENTENCES)][:NAMED_SENTENCES]
        texts, own = [sentence.text for sentence in chosen], None
        figures = {}
        for name, speaker, text in (("default", None, ""), *reference_clips.VOICES):
            spoken = self._voice.speak(texts, MODES["greedy"], [name if speaker else None] * len(texts))
            waves = [one.wave for one in spoken]
            own = own or waves
            details = self._details(f"named {name}", chosen, waves)
            figures[name] = {key: self._totals(details)[key] for key in ("wer", "per")}
            figures[name]["f0"] = round(float(np.median([median_pitch(wave) for wave in waves])))
            if speaker:
                clip = self._teacher.speak(text, speaker)[0].astype(np.float32) / INT16_SCALE
                figures[name]["f0_clip"] = round(median_pitch(clip))
                distances = [mel_cepstral_distortion(*pair) for pair in zip(own, waves)]
                figures[name]["mcd_default"] = round(float(np.mean(distances)), 2)
                teacher = [self._rendered(sentence, speaker) / np.float32(INT16_SCALE) for sentence in chosen]
                totals = self._totals(self._details(f"named {name}, teacher", chosen, teacher))
                figures[name] |= {"wer_teacher": totals["wer"], "per_teacher": totals["per"]}
        self._record("named voices", figures)

    def save(self, out: Path, conditions: Figures, musts: list[str]) -> None:
        """Writes evaluation.json and the waves."""
        result = {**conditions, "musts": musts, "summary": self.summary, "details": self.details}
        (out / "evaluation.json").write_text(json.dumps(result, indent=1))
        for name, waves in self.waves.items():
            np.savez(out / f"wav_{name}.npz", *[to_int16(wave) for wave in waves])


def _pitch(waves: Sequence[np.ndarray]) -> float:
    """The median of the waves' median pitches, in Hz."""
    return round(float(np.median([median_pitch(wave) for wave in waves])), 1)


def _distortion(waves: Sequence[np.ndarray], others: Sequence[np.ndarray]) -> float:
    """The mean over pairs, in dB."""
    return round(float(np.mean([mel_cepstral_distortion(*pair) for pair in zip(waves, others)])), 2)


def _wer(details: list[Figures]) -> float | None:
    total = sum(d["words"] for d in details)
    return _percent(sum(d["word_errors"] for d in details), total) if total else None  # none: nobody listened


def _cloning_summary(details: list[Figures]) -> Figures:
    """Means over the speakers, and for how many each requirement holds."""

    def mean(name: str) -> float:
        return round(float(np.mean([d[name] for d in details])), 2)

    def pitch_errors(other: str, own: str = "f0") -> np.ndarray:
        return np.array([100 * abs(d[own] / max(1.0, d[other]) - 1) for d in details])

    close = [d["mcd"] <= d["mcd_codec"] + MAX_CLONE_DISTORTION_ABOVE_CODEC for d in details]
    return {
        "speakers": len(details),
        "ended": _percent(sum(d["ended"] for d in details), len(details)),
        "pitch_within": int((pitch_errors("f0_reference") <= MAX_PITCH_ERROR).sum()),
        "pitch_within, of the teacher": int(
            (pitch_errors("f0_reference", "f0_teacher") <= MAX_PITCH_ERROR).sum()
        ),
        "pitch_within_teacher's": int((pitch_errors("f0_teacher") <= MAX_PITCH_ERROR).sum()),
        "pitch_median_error": round(float(np.median(pitch_errors("f0_teacher"))), 1),
        "mcd": mean("mcd"),
        "mcd_codec": mean("mcd_codec"),
        "mcd_default": mean("mcd_default"),
        "close_to_codec": int(sum(close)),
        "nearer_than_default": int(sum(d["mcd"] < d["mcd_default"] for d in details)),
    }
