"""A text file as an audiobook: one file for each chapter, all at once, each in the same voice.

    python audiobook.py book.txt audiobook/

A chapter begins with a line such as "Chapter 1". A chapter that fails is told about and fails alone.
"""
import re
import sys
from pathlib import Path

import shoal


def chapters_of(text):
    """(title, text) of every chapter; what stands before the first is a chapter of its own."""
    parts = re.split(r"^(chapter\b.*)$", text, flags=re.IGNORECASE | re.MULTILINE)
    pairs = [("Beginning", parts[0]), *zip(parts[1::2], parts[2::2])]
    return [(title.strip(), body.strip()) for title, body in pairs if body.strip()]


def main(book, folder):
    chapters = chapters_of(Path(book).read_text(encoding="utf-8"))
    Path(folder).mkdir(parents=True, exist_ok=True)

    def save(result):
        title = chapters[result.index][0]
        if result.error:
            print(f"{title}: {result.error}", file=sys.stderr)
            return
        path = Path(folder) / f"{result.index + 1:02} {title}.flac"
        result.speech.save(path)
        print(f"{path}: {result.speech.duration:.1f} s")

    with shoal.Engine() as engine:
        texts = [f"{title}. {body}" for title, body in chapters]
        results = engine.speak_batch(texts, voice="clara", seed=7, on_item=save)
    return 1 if any(result.error for result in results) else 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
