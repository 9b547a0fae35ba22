"""Prints sentences that the training's grammar makes, for figures that need many: python3 made_sentences.py 250.

The seed is none of the training's. Needs no packages.
"""
import sys

import training_path  # noqa: F401
from inputs import InputError, run_tool
from text import TextGenerator

SEED = 500_500_500
MAX_CHARACTERS = 110


def made_sentences(count: int) -> list[str]:
    """Different sentences; some have numbers."""
    generator = TextGenerator(SEED, ["time"], ["time"])  # unrelated words are not asked for
    sentences: dict[str, None] = {}
    while len(sentences) < count:
        sentence = generator.sentence()
        if len(sentence) <= MAX_CHARACTERS:
            sentences[sentence] = None
    return list(sentences)


def main() -> None:
    if len(sys.argv) != 2 or not sys.argv[1].isdecimal():
        raise InputError("expected the number of sentences")
    print("\n".join(made_sentences(int(sys.argv[1]))))


if __name__ == "__main__":
    run_tool(main)
