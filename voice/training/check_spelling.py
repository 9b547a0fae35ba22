"""Compares spelling.py with the engine's normaliser on texts of the grammar; fails where they differ.

One text in a thousand may differ: what the normaliser takes for an abbreviation depends on the text around.
"""
import argparse
import subprocess
from pathlib import Path

from inputs import InputError, run_tool
from spelling import spelled
from teacher import add_word_list_options
from text import TextGenerator, load_words

SHOWN = 10
TOLERATED = 0.001  # of the texts
BLOCK_BYTES = 200_000  # the program reads at most 256 KiB


def normalised(program: Path, texts: list[str]) -> list[str]:
    """What `shoal normalize` makes of the texts."""
    results, block, size = [], [], 0
    for i, text in enumerate(texts):
        block.append(text)
        size += len(text.encode()) + 2
        if size < BLOCK_BYTES and i + 1 < len(texts):
            continue
        run = subprocess.run(
            [program, "normalize", "-"], input="\n\n".join(block), capture_output=True, text=True, timeout=60
        )
        if run.returncode:
            raise InputError(f"{program} normalize failed: {run.stderr.strip()}")
        results += run.stdout[:-1].split("\n\n")
        block, size = [], 0
    return results


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shoal", type=Path, required=True, metavar="PROGRAM", help="the built program")
    parser.add_argument("--texts", type=int, default=20000, help="how many (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the texts (default: %(default)s)")
    add_word_list_options(parser)
    options = parser.parse_args()
    generator = TextGenerator(options.seed, load_words(options.small), load_words(options.full), spell=False)
    texts = [generator.utterance() for _ in range(options.texts)]
    wanted = normalised(options.shoal, texts)
    wrong = [(text, want) for text, want in zip(texts, wanted, strict=True) if spelled(text) != want]
    for text, want in wrong[:SHOWN]:
        print(f"{text}\n  {spelled(text)}\n  {want}")
    if len(wrong) > TOLERATED * len(texts):
        raise InputError(f"{len(wrong)} of {len(texts)} texts are spelled otherwise by {options.shoal}")
    print(f"{len(texts) - len(wrong)} of {len(texts)} texts are spelled alike")


if __name__ == "__main__":
    run_tool(main)
