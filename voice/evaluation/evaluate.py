"""Measures a voice on held-out sentences, as the engine speaks it (or, to compare, PyTorch).

Word errors (pocketsphinx), phone errors (with --recog or --phone-loop), cepstral distance to the teacher's renderings, ends,
durations, cloning of unseen speakers and speed. Numbers in the sentences are compared with what `shoal
normalize` makes of them. Prints a table and what of the requirements is kept, writes evaluation.json and the
waves of each way of speaking to wav_NAME.npz.
"""
import argparse
import contextlib
import functools
import json
from collections.abc import Iterator
from pathlib import Path

import training_path  # noqa: F401
from engine import Engine, spoken_form
from evaluation import Evaluation
from inputs import require_file, run_tool
from musts import judge
from phone_loop import PhoneLoop
from spelling import spelled
from synthesis import MODES, Synthesiser
from text import EVERYDAY_FILE, HELD_OUT_FILE, held_out_sentences
from word_errors import WordListener

VOICE = Path(__file__).resolve().parent.parent
COLUMNS = (
    "wer",
    "wer, held-out",
    "wer, everyday",
    "wer, digits",
    "per",
    "mcd",
    "ended",
    "duration_ratio",
    "ratio_sd",
    "speed",
    "speed_alone",
)


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--shoal", type=Path, metavar="PROGRAM", help="the built program; only --pytorch does without")
    add("--voice", type=Path, default=VOICE, help="folder of the voice (default: the shipped one)")
    add("--out", type=Path, required=True, help="folder for the results; made if missing")
    add("--device", default="cpu", help="of the engine (default: %(default)s)")
    add("--precision", default="auto", help="of the engine (default: %(default)s)")
    add(
        "--with",
        action="append",
        default=[],
        dest="more",
        metavar="OPTION",
        help="one more option of `shoal serve`, repeatable: --with=--threads=2",
    )
    add("--pytorch", action="store_true", help="speak with the PyTorch code instead, in fp32")
    add("--modes", default="greedy,t0.7", help=f"of {', '.join(MODES)}, with commas (default: %(default)s)")
    add("--speakers", type=int, default=10, help="unseen speakers to clone (default: %(default)s)")
    add("--sentences", type=int, default=10**6, metavar="N", help="of each file, the first N alone")
    add("--texts", type=Path, metavar="FILE", help="other sentences, one a line, instead of the two files")
    add("--recog", type=Path, help="weights of the phone recogniser (PyTorch); none: no phone errors")
    add(
        "--train-recog",
        type=float,
        default=0,
        metavar="SECONDS",
        help="first train the recogniser on the shards of --data for so long, and write it to --recog",
    )
    add("--data", type=Path, help="folder with the shards of teacher.py, for --train-recog")
    add(
        "--phone-loop",
        action="store_true",
        help="phone errors by pocketsphinx instead, which knows nothing of the voice and mishears three of ten",
    )
    add("--no-words", action="store_true", help="no word errors: pocketsphinx is not there")
    add(
        "--heard",
        type=Path,
        metavar="JSON",
        help="what was heard in waves already, to be shared by evaluations (default: heard.json in --out)",
    )
    add("--against", type=Path, metavar="JSON", help="evaluation.json of another computation of this voice")
    add("--max-new", type=int, default=420, help="frames after which a sentence has failed to end")
    options = parser.parse_args()
    if options.train_recog and not (options.data and options.recog):
        parser.error("--train-recog needs --data (the shards) and --recog (where to write the weights)")
    if not options.shoal and not options.pytorch:
        parser.error("give --shoal (the built program) or --pytorch")
    unknown = set(options.modes.split(",")) - set(MODES)
    if unknown:
        parser.error(f"--modes: unknown {', '.join(sorted(unknown))}; choose from {', '.join(MODES)}")
    return options


@contextlib.contextmanager
def _voice(options: argparse.Namespace) -> Iterator[tuple[Synthesiser, str]]:
    """What speaks, and its description."""
    if options.pytorch:
        from pytorch_voice import PyTorchVoice

        yield PyTorchVoice(options.voice, options.max_new), "PyTorch, float32"
        return
    chosen = ["--model", str(options.voice), "--device", options.device, "--precision", options.precision]
    with Engine(options.shoal, [*chosen, *options.more], options.max_new) as engine:
        yield engine, f"{options.shoal.name}: {engine.ready} {' '.join(options.more)}".strip()


def _phone_listener(options: argparse.Namespace):
    if options.phone_loop:
        return PhoneLoop(options.heard or options.out / "heard.json")
    if not options.recog:
        return None
    import recogniser

    if options.train_recog:
        recogniser.train_recogniser(options.data, options.recog, options.train_recog)
    return recogniser.PhoneListener(options.recog)


def _print_table(evaluation: Evaluation) -> None:
    print("| | " + " | ".join(COLUMNS) + " |\n" + "| --- " * (len(COLUMNS) + 1) + "|")
    for name, figures in evaluation.summary.items():
        if name not in ("cloning", "named voices"):
            values = [figures.get(column) for column in COLUMNS]
            print(f"| {name} | " + " | ".join("" if v is None else f"{v:g}" for v in values) + " |")


def main() -> None:
    options = _parse_options()
    if options.shoal:
        require_file(options.shoal, "build the program, or name it with --shoal")
    require_file(options.voice / "model.safetensors", "train_ar.py writes it")  # before minutes of other work
    other = json.loads(options.against.read_text())["summary"] if options.against else None
    options.out.mkdir(parents=True, exist_ok=True)
    sentences = {"held-out": HELD_OUT_FILE, "everyday": EVERYDAY_FILE}
    if options.texts:
        sentences = {"texts": options.texts}
    sentences = {name: held_out_sentences(path)[: options.sentences] for name, path in sentences.items()}
    ear = None if options.no_words else WordListener(options.heard or options.out / "heard.json")
    phones = _phone_listener(options)
    with _voice(options) as (voice, description):
        print(description, flush=True)
        # The training's own spelling knows fewer kinds of numbers than the engine.
        to_words = functools.partial(spoken_form, options.shoal) if options.shoal else spelled
        evaluation = Evaluation(voice, sentences, to_words, ear, phones, told_spoken=options.pytorch)
        evaluation.measure_limits()
        for mode in options.modes.split(","):
            evaluation.measure_mode(mode)
        if options.speakers:
            evaluation.measure_cloning(options.speakers)
        if not options.pytorch and (options.voice / "voices").is_dir():
            evaluation.measure_named()
    musts = [str(must) for must in judge(evaluation.summary, other)]
    evaluation.save(options.out, {"voice": str(options.voice), "computed": description}, musts)
    _print_table(evaluation)
    print("\n".join(musts), flush=True)


if __name__ == "__main__":
    run_tool(main)
