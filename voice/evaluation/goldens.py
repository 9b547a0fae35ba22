"""Writes parity files for an engine: what the models compute for three prompts, in fp32 on the CPU.

Each NAME.safetensors holds, for T prompt positions, N frames, K codebooks (texts are UTF-8 bytes):
  ref_text, ref_wave_i16,           only with a reference: its text, its samples and
  ref_codes [frames, K]             what the codec makes of them
  text, prompt [T, 1+K]             the text and its token rows
  codes [N, K]                      greedy codes
  margin [N, K]                     difference of the two best logits of each decision
  first_logits, first_hidden [dim]  at the last position of the prompt
  wave_i16, wave_f32_start          the decoded wave (not of every case, for its size), and its first samples
                                    unrounded
"""
import argparse
from pathlib import Path
from typing import NamedTuple

import torch

import training_path  # noqa: F401
from checkpoints import Weights, load_voice, save_safetensors
from codec import Codec
from dual_ar import DualAR
from generation import generate
from inputs import InputError, run_tool
from pcm import FRAME_SAMPLES, INT16_SCALE, SAMPLE_RATE
from prompt import END_ID, SEMANTIC_BEGIN, build_prompt
from teacher import Speaker, Teacher

MAX_FRAMES = 400
UNROUNDED_SAMPLES = 2560


class Case(NamedTuple):
    """A text, and perhaps the text and the speaker of a reference."""

    name: str
    text: str
    reference: tuple[str, Speaker] | None = None
    whole_wave: bool = True


# With the shipped voice all margins are above 0.0004: a correct fp32 engine makes the same choices.
CASES = (
    Case("hello", "Hello, and welcome to Shoal."),
    Case("numbers", "The train leaves at 8:30, and a ticket costs $12.", whole_wave=False),
    Case(
        "cloned", "Close the door, please.", ("The window was open all night.", Speaker("slt")), whole_wave=False
    ),
)


def _as_bytes(text: str) -> torch.Tensor:
    return torch.tensor(list(text.encode()), dtype=torch.uint8)


def _decisions(dual_ar: DualAR, prompt: torch.Tensor, codes: torch.Tensor) -> Weights:
    """Computes every decision once more from all rows at once: the margins, and the first hidden state."""
    frames = torch.cat([codes[:, :1] + SEMANTIC_BEGIN, codes], 1)
    hidden = dual_ar.slow(torch.cat([prompt, frames])[None])[0, len(prompt) - 1 :]
    logits = dual_ar.head(hidden)
    two_best = logits.topk(2, -1).values[:-1]
    fast = dual_ar.fast(hidden[:-1], codes[:, :-1])[:, 1:].topk(2, -1)
    tokens_agree = (logits.argmax(-1)[:-1] == codes[:, 0] + SEMANTIC_BEGIN).all()
    if not tokens_agree or not (fast.indices[..., 0] == codes[:, 1:]).all():
        raise InputError("all rows at once decide otherwise than row by row: a margin is within rounding")
    fast_margin = fast.values[..., 0] - fast.values[..., 1]
    margin = torch.cat([two_best[:, :1] - two_best[:, 1:], fast_margin], 1)
    return {"margin": margin, "first_logits": logits[0], "first_hidden": hidden[0]}


@torch.no_grad()
def golden(case: Case, codec: Codec, dual_ar: DualAR, teacher: Teacher) -> Weights:
    """The tensors of one file."""
    tensors, references = {}, []
    if case.reference:
        reference_text, speaker = case.reference
        samples = torch.from_numpy(teacher.speak(reference_text, speaker)[0])
        reference_codes = codec.encode(samples.float()[None, None] / INT16_SCALE)[0].t()
        references = [(reference_text, reference_codes)]
        tensors["ref_text"], tensors["ref_wave_i16"] = _as_bytes(reference_text), samples
        tensors["ref_codes"] = reference_codes.short()
    prompt = build_prompt(case.text, dual_ar.codebooks, references)
    (codes,), (ended,) = generate(dual_ar, [prompt], END_ID, MAX_FRAMES)
    if not ended:
        raise InputError(f"{case.name}: no end token within {MAX_FRAMES} frames; is the voice trained?")
    wave = codec.decode(codes.t()[None])[0, 0]
    tensors |= {"text": _as_bytes(case.text), "prompt": prompt.short(), "codes": codes.short()}
    tensors |= _decisions(dual_ar, prompt, codes)
    if case.whole_wave:
        tensors["wave_i16"] = (wave.clamp(-1, 1) * 32767).round().short()
    tensors["wave_f32_start"] = wave[:UNROUNDED_SAMPLES]
    return tensors


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--voice", type=Path, required=True, help="folder with the voice's weights and configs"
    )
    parser.add_argument(
        "--out", type=Path, required=True, help="folder for the .safetensors files; made if missing"
    )
    options = parser.parse_args()
    codec, dual_ar = load_voice(options.voice, "cpu")
    teacher = Teacher()
    options.out.mkdir(parents=True, exist_ok=True)
    for case in CASES:
        tensors = golden(case, codec, dual_ar, teacher)
        save_safetensors(tensors, options.out / f"{case.name}.safetensors")
        seconds = len(tensors["codes"]) * FRAME_SAMPLES / SAMPLE_RATE
        shapes = f"prompt {tuple(tensors['prompt'].shape)} codes {tuple(tensors['codes'].shape)}"
        print(f"{case.name}: {shapes}, smallest margin {tensors['margin'].min():.4f}, {seconds:.2f} s")


if __name__ == "__main__":
    run_tool(main)
