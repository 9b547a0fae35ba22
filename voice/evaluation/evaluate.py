"""Objective checks of a trained voice on held-out sentences, against the teacher's renderings.

Measured are the end token, the duration, the cepstral distance, the phone error rate (with --recog), and for
cloning how well the pitch follows the reference. Prints each result, writes all to eval.json, the waves of
each mode to wav_MODE.npz, and a few as WAV files.
"""
import argparse
import json
import random
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

import training_path  # noqa: F401
from checkpoints import load_voice
from generation import Sampling, generate
from inputs import require_file, run_tool
from measures import edit_distance, median_pitch, mel_cepstral_distortion
from pcm import INT16_SCALE, save_wav, to_int16
from prompt import END_ID, build_prompt
from recogniser import Recogniser, collapse, load_recogniser, recognise, train_recogniser
from teacher import DEFAULT_SPEAKER, Speaker, Teacher, random_speaker
from text import held_out_sentences

MODES = {
    "greedy": {},
    "t0.7_p0.7_r1.1": {"temperature": 0.7, "top_p": 0.7, "penalty": 1.1},
    "t0.8_p0.8_r1.1": {"temperature": 0.8, "top_p": 0.8, "penalty": 1.1},
}
SAMPLING_SEED = 0
SPEAKER_SEED = 99  # of the speakers to clone: none of the training data's
FAILED_SAMPLES = 2048  # of silence, which stand for a sentence without a single frame
WAV_SENTENCES = (0, 1, 24)  # saved as WAV files
SAVED_CLONES = 4
CLONING_MEANS = ("done", "mcd_same", "mcd_codec", "mcd_default")

Figures = dict[str, float | None]


@dataclass
class CloningResult:
    """One speaker: what the reference, the teacher and the clone sound like."""

    spk: Speaker
    done: bool  # ended by itself
    f0_ref: int  # median pitch, Hz
    f0_teacher: int
    f0_out: int
    mcd_same: float  # cepstral distance to the right speaker, dB
    mcd_codec: float  # of the codec alone
    mcd_default: float  # to the default speaker
    ratio: float  # duration / the teacher's
    per: float | None  # phone errors, percent


class Evaluation:
    """The models, the teacher's renderings, and the results so far."""

    def __init__(self, voice: Path, recogniser: Recogniser | None, device: str, max_frames: int):
        self._codec, self._dual_ar = load_voice(voice, device)
        self._recogniser = recogniser
        self._device = device
        self._max_frames = max_frames
        self._teacher = Teacher()
        self._sentences = held_out_sentences()
        rendered = [self._speak(sentence, DEFAULT_SPEAKER) for sentence in self._sentences]
        self._targets = [wave for wave, _ in rendered]
        self._phones = [phones for _, phones in rendered]
        self.summary: dict[str, Figures] = {}
        self.waves: dict[str, list[torch.Tensor]] = {"teacher": self._targets}
        self.cloning_results: list[CloningResult] = []

    def _speak(self, sentence: str, speaker: Speaker) -> tuple[torch.Tensor, list[int]]:
        """The teacher's wave [samples] and its phones."""
        samples, labels = self._teacher.speak(sentence, speaker)
        return torch.tensor(samples, device=self._device).float() / INT16_SCALE, collapse(labels)

    @torch.no_grad()
    def _encode(self, wave: torch.Tensor) -> torch.Tensor:
        """[samples] -> codes [frames, codebooks]."""
        return self._codec.encode(wave[None, None])[0].t()

    @torch.no_grad()
    def _decode(self, codes: torch.Tensor) -> torch.Tensor:
        """Codes [frames, codebooks] -> [samples]."""
        if not len(codes):
            return torch.zeros(FAILED_SAMPLES, device=self._device)
        return self._codec.decode(codes.t()[None])[0, 0]

    def _compare(self, waves: list[torch.Tensor]) -> Figures:
        """Cepstral distance to the teacher's renderings, and phone errors, of one wave for each sentence."""
        distances = [mel_cepstral_distortion(target, wave) for target, wave in zip(self._targets, waves)]
        figures = {"mcd": round(float(np.mean(distances)), 2)}
        if self._recogniser:
            errors = [self._phone_errors(phones, wave) for phones, wave in zip(self._phones, waves)]
            figures["per"] = round(100 * sum(errors) / sum(map(len, self._phones)), 1)
        return figures

    def _phone_errors(self, phones: list[int], wave: torch.Tensor) -> int:
        return edit_distance(phones, recognise(self._recogniser, wave))

    def _record(self, name: str, figures: Figures) -> None:
        self.summary[name] = figures
        print(name, figures, flush=True)

    def measure_limits(self) -> None:
        """The teacher against itself, against another sentence, and after the codec."""
        self._record("teacher itself", self._compare(self._targets))
        self._record("another sentence (ceiling)", self._compare(self._targets[1:] + self._targets[:1]))
        self.waves["codec"] = [self._decode(self._encode(target)) for target in self._targets]
        self._record("codec resynthesis (floor)", self._compare(self.waves["codec"]))

    def measure_mode(self, mode: str) -> None:
        """Text to speech, all sentences in one batch."""
        generator = torch.Generator(device=self._device)
        generator.manual_seed(SAMPLING_SEED)
        prompts = [build_prompt(sentence, self._dual_ar.codebooks) for sentence in self._sentences]
        sampling = Sampling(**MODES[mode], generator=generator)
        codes, ended = generate(self._dual_ar, prompts, END_ID, self._max_frames, sampling)
        waves = self.waves[mode] = [self._decode(of_sentence) for of_sentence in codes]
        ratio = np.array([len(wave) / len(target) for wave, target in zip(waves, self._targets)])
        figures = {
            "ended": round(100 * float(np.mean(ended)), 1),
            "duration_ratio": round(float(ratio.mean()), 3),
            "ratio_sd": round(float(ratio.std()), 3),
        }
        self._record(mode, figures | self._compare(waves))

    def _clone(self, sentence: str, reference_text: str, speaker: Speaker) -> CloningResult:
        reference, _ = self._speak(reference_text, speaker)
        target, _ = self._speak(sentence, speaker)
        # Spoken once more for the phones: flite's noise depends on the number of calls, and the figures of
        # MODEL_CARD.md were measured with this one.
        _, phones = self._speak(sentence, speaker)
        default, _ = self._speak(sentence, DEFAULT_SPEAKER)
        references = [(reference_text, self._encode(reference))]
        prompt = build_prompt(sentence, self._dual_ar.codebooks, references)
        (codes,), (ended,) = generate(self._dual_ar, [prompt], END_ID, self._max_frames)
        wave = self._decode(codes)
        if len(self.cloning_results) < SAVED_CLONES:
            self.waves.setdefault("clone", []).extend([reference, target, wave])
        per = round(100 * self._phone_errors(phones, wave) / len(phones), 1) if self._recogniser else None
        return CloningResult(
            spk=speaker,
            done=ended,
            f0_ref=round(median_pitch(reference.cpu())),
            f0_teacher=round(median_pitch(target.cpu())),
            f0_out=round(median_pitch(wave.cpu())),
            mcd_same=_distance(target, wave),
            mcd_codec=_distance(target, self._decode(self._encode(target))),
            mcd_default=_distance(default, wave),
            ratio=round(len(wave) / len(target), 2),
            per=per,
        )

    def measure_cloning(self, speakers: int) -> None:
        """One sentence for each of some unseen speakers, after a reference in that voice."""
        if not speakers:
            return
        rng, count = random.Random(SPEAKER_SEED), len(self._sentences)
        for i in range(speakers):
            speaker = random_speaker(rng)
            reference_text = self._sentences[(3 * i + i % 2) % 40]
            result = self._clone(self._sentences[(7 * i + 5) % count], reference_text, speaker)
            self.cloning_results.append(result)
            print(result, flush=True)
        self._record("cloning", _cloning_summary(self.cloning_results))

    def save(self, out: Path) -> None:
        """Writes eval.json and the waves."""
        cloning = [vars(result) for result in self.cloning_results]
        (out / "eval.json").write_text(json.dumps({"summary": self.summary, "cloning": cloning}, indent=1))
        for name, waves in self.waves.items():
            np.savez(out / f"wav_{name}.npz", *[to_int16(wave.cpu()) for wave in waves])
        if "greedy" in self.waves:
            for i in WAV_SENTENCES:
                save_wav(out / f"greedy_{i}.wav", to_int16(self.waves["greedy"][i].cpu()))


def _distance(wave: torch.Tensor, other: torch.Tensor) -> float:
    return round(float(mel_cepstral_distortion(wave, other)), 2)


def _cloning_summary(results: list[CloningResult]) -> Figures:
    """Means over the speakers, and how the clones' pitch follows the teacher's."""
    pitches = [[result.f0_out, result.f0_teacher] for result in results]
    log_out, log_teacher = np.log(np.maximum(1, pitches)).T
    error = 100 * np.median(np.abs(np.exp(log_out - log_teacher) - 1))
    mean = {name: float(np.mean([vars(result)[name] for result in results])) for name in CLONING_MEANS}
    return {
        "ended": 100 * mean["done"],
        "f0_corr": round(float(np.corrcoef(log_out, log_teacher)[0, 1]), 3),
        "f0_median_error_pct": round(float(error), 1),
        "mcd_same": round(mean["mcd_same"], 2),
        "mcd_codec": round(mean["mcd_codec"], 2),
        "mcd_default": round(mean["mcd_default"], 2),
    }


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--voice", type=Path, required=True, help="folder with the voice's weights and configs")
    add("--out", type=Path, required=True, help="folder for the results; made if missing")
    add("--recog", type=Path, help="weights of the phone recogniser; none: no phone error rates")
    add(
        "--train-recog",
        type=float,
        default=0,
        metavar="SECONDS",
        help="first train the recogniser on the shards of --data for so long, and write it to --recog",
    )
    add("--data", type=Path, help="folder with the shards of teacher.py, for --train-recog")
    add("--modes", default=",".join(MODES), help="ways of sampling, with commas (default: all, %(default)s)")
    add("--speakers", type=int, default=10, help="speakers to clone (default: %(default)s)")
    add("--max-new", type=int, default=420, help="frames after which a sentence has failed to end")
    options = parser.parse_args()
    if options.train_recog and not (options.data and options.recog):
        parser.error("--train-recog needs --data (the shards) and --recog (where to write the weights)")
    unknown = set(options.modes.split(",")) - set(MODES)
    if unknown:
        parser.error(f"--modes: unknown {', '.join(sorted(unknown))}; choose from {', '.join(MODES)}")
    return options


def main() -> None:
    options = _parse_options()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    require_file(options.voice / "model.safetensors", "train_ar.py writes it")  # before minutes of other work
    options.out.mkdir(parents=True, exist_ok=True)
    if options.train_recog:
        train_recogniser(options.data, options.recog, options.train_recog, device)
    recogniser = load_recogniser(options.recog, device) if options.recog else None
    evaluation = Evaluation(options.voice, recogniser, device, options.max_new)
    evaluation.measure_limits()
    for mode in options.modes.split(","):
        evaluation.measure_mode(mode)
    evaluation.measure_cloning(options.speakers)
    evaluation.save(options.out)


if __name__ == "__main__":
    run_tool(main)
