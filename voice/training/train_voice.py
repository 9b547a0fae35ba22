"""Trains a voice: speech by the teacher, the codec, the DualAR model, and the evaluation, in one process.

The training may be cut into stretches of --seconds each, on several machines: call it again, and it goes on
where it was. --work keeps what is large (shards, the optimisers' states) and may be lost; --out is a voice
with what the next stretch needs, written every --save-every seconds.
"""
import argparse
import multiprocessing
import subprocess
import sys
import time
from pathlib import Path

import torch

import ar_trainer
import codec_trainer
from inputs import run_tool
from stretch import Stretch
from teacher import add_speech_options, start_workers
from train_ar import add_ar_options, train_ar
from train_codec import add_codec_options, train_codec

EVALUATE = Path(__file__).resolve().parent.parent / "evaluation" / "evaluate.py"
SPARED_SECONDS = 6  # at the end of a stretch: a part is not begun any more
JOIN_SECONDS = 10


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--work", type=Path, required=True, help="folder for what is large; made if missing")
    add("--out", type=Path, required=True, help="folder of the voice; made if missing")
    add("--init", type=Path, help="folder of an earlier stretch, where --out has none")
    add("--seconds", type=float, default=570, help="of this stretch, all included (default: %(default)s)")
    add("--save-every", type=float, default=120, help="seconds between saves (default: %(default)s)")
    add("--eager", action="store_true", help="no CUDA graphs, nothing compiled; slower, but easier to debug")
    add(
        "--evaluate",
        nargs=argparse.REMAINDER,
        help="last of all options: when the training is done, run evaluate.py with what follows"
        " (--pytorch --no-words --recog FILE where there is no engine)",
    )
    add_speech_options(parser)
    add_codec_options(parser)
    add_ar_options(parser)
    return parser.parse_args()


def _stop(workers: list[multiprocessing.Process]) -> None:
    """Shards in the making are lost."""
    for worker in workers:
        worker.terminate()
    for worker in workers:
        worker.join(JOIN_SECONDS)


def _train(options: argparse.Namespace, data: Path, stretch: Stretch) -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    parts = ((codec_trainer.PART, train_codec), (ar_trainer.PART, train_ar))
    for part, train in parts:
        if stretch.progress(part) < 1:
            if stretch.seconds_left() < SPARED_SECONDS:
                return
            train(options, data, stretch, device)
        if stretch.progress(part) < 1:
            return
        if device == "cuda":
            torch.cuda.empty_cache()


def main() -> None:
    options = _parse_options()
    deadline = time.time() + options.seconds
    data = options.work / "data"
    workers = start_workers(options, data)  # before the GPU is touched
    try:
        stretch = Stretch(options.work, options.out, options.init, deadline)
        _train(options, data, stretch)
    finally:
        _stop(workers)
    print(f"{stretch.seconds_left():.0f} s left", flush=True)
    if options.evaluate is not None and stretch.progress(ar_trainer.PART) >= 1:
        command = [sys.executable, str(EVALUATE), "--voice", str(options.out), *options.evaluate]
        subprocess.run(command, timeout=max(1.0, stretch.seconds_left()), check=False)


if __name__ == "__main__":
    run_tool(main)
