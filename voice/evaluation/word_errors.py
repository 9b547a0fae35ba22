"""Word error rate by an ordinary recogniser, pocketsphinx, which knows nothing of the voice.

Needs the Debian packages pocketsphinx and pocketsphinx-en-us. Sentences with digits are left out, because the
recogniser writes numbers as words.
"""
import argparse
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import training_path  # noqa: F401
from inputs import InputError, require_file, run_tool
from measures import edit_distance
from pcm import save_wav
from text import HELD_OUT_FILE

PROGRAM = "pocketsphinx_batch"
MODEL = Path("/usr/share/pocketsphinx/model/en-us")
SILENCE_BEFORE = 4000  # samples; the recogniser needs some to measure the noise
SILENCE_AFTER = 6000
SHOWN = 5


def words(text: str) -> list[str]:
    """Lower-case words; apostrophes are kept."""
    return re.sub(r"[^a-z' ]", " ", text.lower()).split()


def _run_recogniser(folder: Path) -> None:
    command = [PROGRAM, "-adcin", "yes", "-adchdr", "44", "-cepdir", str(folder), "-cepext", ".wav"]
    command += ["-ctl", str(folder / "ids"), "-hyp", str(folder / "hyp"), "-hmm", str(MODEL / "en-us")]
    command += ["-lm", str(MODEL / "en-us.lm.bin"), "-dict", str(MODEL / "cmudict-en-us.dict")]
    if not shutil.which(PROGRAM):
        raise InputError(f"{PROGRAM} is not installed (Debian: pocketsphinx)")
    require_file(MODEL / "en-us.lm.bin", "install the English model (Debian: pocketsphinx-en-us)")
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        raise InputError(f"{PROGRAM} failed: {result.stderr.strip()[-300:]}")


def hear(waves: Sequence[np.ndarray]) -> list[str]:
    """What pocketsphinx hears in each wave (int16, 16 kHz); empty where it hears nothing."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for i, wave in enumerate(waves):
            save_wav(folder / f"{i}.wav", np.pad(np.asarray(wave, np.int16), (SILENCE_BEFORE, SILENCE_AFTER)))
        (folder / "ids").write_text("".join(f"{i}\n" for i in range(len(waves))))
        _run_recogniser(folder)
        lines = (folder / "hyp").read_text().splitlines()
    matches = [re.match(r"(.*) \((\d+)(?: -?\d+)?\)$", line.strip()) for line in lines]  # "text (id score)"
    heard = {int(match.group(2)): match.group(1) for match in matches}
    return [heard.get(i, "") for i in range(len(waves))]


def word_error_rate(texts: Sequence[str], heard: Sequence[str]) -> float:
    """Errors in percent of the words of the texts."""
    errors = sum(edit_distance(words(text), words(other)) for text, other in zip(texts, heard))
    return 100 * errors / sum(len(words(text)) for text in texts)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "waves", type=Path, help=".npz with one int16 wave at 16 kHz for each sentence, in order"
    )
    parser.add_argument(
        "sentences",
        type=Path,
        nargs="?",
        default=HELD_OUT_FILE,
        help="what is said, one sentence a line (default: training/test_sentences.txt)",
    )
    options = parser.parse_args()
    archive = np.load(require_file(options.waves, "evaluate.py writes wav_greedy.npz and others"))
    sentences = require_file(options.sentences, "give a text file").read_text().strip().split("\n")
    if len(archive.files) != len(sentences):
        raise InputError(f"{options.waves}: {len(archive.files)} waves for {len(sentences)} sentences")
    spelled = [(name, text) for name, text in zip(archive.files, sentences) if not re.search(r"\d", text)]
    texts = [text for _, text in spelled]
    heard = hear([archive[name] for name, _ in spelled])
    for text, other in list(zip(texts, heard))[:SHOWN]:
        print(f"{text}  ->  {other}")
    rate = word_error_rate(texts, heard)
    print(f"{options.waves}: word errors {rate:.1f} % over {len(texts)} sentences")


if __name__ == "__main__":
    run_tool(main)
