"""The whole chain on a minute of speech and tiny models, on a CPU in some minutes: does every part still fit?

Three stretches, the second on "another machine" (its state is gone), then the evaluation by PyTorch and, with
--shoal, by the engine. What is learned is worthless.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from inputs import InputError, run_tool

HERE = Path(__file__).resolve().parent
CODEC = {
    "encoder_dim": 4,
    "decoder_dim": 32,
    "latent_dim": 24,
    "codebook_size": 32,
    "semantic_codebook_size": 32,
    "n_codebooks": 3,
    "q_layers": 1,
    "q_heads": 1,
    "q_head_dim": 16,
    "q_inter": 32,
}
DUAL_AR = {
    "n_layer": 1,
    "dim": 32,
    "n_head": 2,
    "n_local_heads": 1,
    "head_dim": 16,
    "intermediate_size": 48,
    "n_fast_layer": 1,
    "fast_dim": 16,
    "fast_n_head": 1,
    "fast_n_local_heads": 1,
    "fast_head_dim": 16,
    "fast_intermediate_size": 32,
}
SIZES = [
    "--hours",
    "0.05",
    "--shard-minutes",
    "1",
    "--workers",
    "2",
    "--min-hours",
    "0.03",
    "--codec-batch",
    "2",
    "--crop",
    "20",
    "--tokens",
    "2048",
    "--fast-frames",
    "64",
    "--max-passes",
    "1000",
    "--save-every",
    "3",
]
MALLOC = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "100000000000"}  # see README.md
STEP_SECONDS = 400


def _run(program: Path, *options: object) -> None:
    command = [sys.executable, str(program), *map(str, options)]
    subprocess.run(command, check=True, timeout=STEP_SECONDS, env={**os.environ, **MALLOC})


def _stretch(folder: Path, *options: object) -> dict[str, float]:
    """Returns the progress."""
    _run(
        HERE / "train_voice.py",
        "--work",
        folder / "work",
        "--out",
        folder / "voice",
        *SIZES,
        "--codec-config",
        json.dumps(CODEC),
        "--ar-config",
        json.dumps(DUAL_AR),
        *options,
    )
    return json.loads((folder / "voice" / "progress.json").read_text())


def _expect(condition: bool, what: str) -> None:
    if not condition:
        raise InputError(what)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--shoal", type=Path, metavar="PROGRAM", help="the built program, to speak once as well"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        first, second = Path(name) / "first", Path(name) / "second"
        never = ["--codec-seconds", 1e5, "--ar-seconds", 1e5]  # only the end of a stretch or of the steps counts
        progress = _stretch(first, *never, "--seconds", 30, "--adversarial-from", 0)
        _expect(0 < progress["codec"] < 1 and "dual_ar" not in progress, f"first stretch: {progress}")
        (second / "work").mkdir(parents=True)
        shutil.move(first / "work" / "data", second / "work" / "data")
        steps = ["--codec-steps", 6, "--adversarial-from", 0.9]
        progress = _stretch(second, "--init", first / "voice", *never, *steps, "--seconds", 90)
        _expect(progress["codec"] == 1 and 0 < progress["dual_ar"] < 1, f"second stretch: {progress}")
        evaluation = ["--evaluate", "--pytorch", "--no-words", "--sentences", 1, "--speakers", 1]
        evaluation += ["--max-new", 30, "--modes", "t0.7", "--out", second / "evaluation"]
        progress = _stretch(second, *never, "--seconds", 300, "--ar-steps", 24, *evaluation)
        _expect(progress == {"codec": 1, "dual_ar": 1}, f"third stretch: {progress}")
        result = json.loads((second / "evaluation" / "evaluation.json").read_text())
        _expect(result["summary"]["codec"]["mcd"] > 0, f"evaluation: {result['summary']}")
        drawn, ways = Path(name) / "drawn.png", "teacher,codec,t0.7"
        draw = HERE.parent / "evaluation" / "spectrograms.py"
        _run(draw, "--evaluation", second / "evaluation", "--ways", ways, "--out", drawn)
        _expect(drawn.stat().st_size > 500, "a picture of three spectrograms")
        mean, weights = Path(name) / "mean", second / "voice" / "model.safetensors"
        _run(HERE / "average.py", "--out", mean, f"{weights}:1", f"{weights}:3")
        _expect(mean.read_bytes() == weights.read_bytes(), "the mean of a model and itself is the model")
        if options.shoal:
            _run(
                HERE.parent / "evaluation" / "evaluate.py",
                "--shoal",
                options.shoal,
                "--voice",
                second / "voice",
                "--no-words",
                "--sentences",
                1,
                "--speakers",
                1,
                "--max-new",
                30,
                "--modes",
                "greedy",
                "--out",
                second / "engine",
            )
    print("the chain holds")


if __name__ == "__main__":
    run_tool(main)
