"""Word errors by an ordinary recogniser, pocketsphinx, which knows nothing of the voice.

Needs the Debian packages pocketsphinx and pocketsphinx-en-us. It writes numbers as words, so the texts must
be as they are spoken.
"""
import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import training_path  # noqa: F401
from inputs import InputError, require_file
from measures import edit_distance
from pcm import save_wav

PROGRAM = "pocketsphinx_batch"
MODEL = Path("/usr/share/pocketsphinx/model/en-us")
SILENCE_BEFORE = 4000  # samples; the recogniser needs some to measure the noise
SILENCE_AFTER = 6000
WORD_SEARCH = ["-lm", str(MODEL / "en-us.lm.bin"), "-dict", str(MODEL / "cmudict-en-us.dict")]
LISTS = 4  # the waves are dealt to so many processes; a constant, for the figures depend on it


def words(text: str) -> list[str]:
    """Lower-case words; apostrophes are kept. The recogniser writes AM and PM in several ways."""
    text = re.sub(r"[^a-z' ]", " ", text.lower())
    return re.sub(r"\b([ap]) +m\b", r"\1m", text).split()


def word_errors(text: str, heard: str) -> int:
    """Words that are wrong, missing or too many."""
    return edit_distance(words(text), words(heard))


def _recognise(waves: Sequence[np.ndarray], search: Sequence[str]) -> list[str]:
    """One process of the recogniser; search: its options that say what it looks for."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for i, wave in enumerate(waves):
            save_wav(folder / f"{i}.wav", np.pad(wave, (SILENCE_BEFORE, SILENCE_AFTER)))
        (folder / "ids").write_text("".join(f"{i}\n" for i in range(len(waves))))
        command = [PROGRAM, "-adcin", "yes", "-adchdr", "44", "-cepdir", name, "-cepext", ".wav"]
        command += ["-ctl", str(folder / "ids"), "-hyp", str(folder / "hyp"), "-hmm", str(MODEL / "en-us")]
        result = subprocess.run([*command, *search], capture_output=True, text=True)
        if result.returncode:
            raise InputError(f"{PROGRAM} failed: {result.stderr.strip()[-300:]}")
        lines = (folder / "hyp").read_text().splitlines()
    matches = [re.match(r"(.*) \((\d+)(?: -?\d+)?\)$", line.strip()) for line in lines]  # "text (id score)"
    heard = {int(match.group(2)): match.group(1) for match in matches if match}
    return [heard.get(i, "") for i in range(len(waves))]


class WordListener:
    """Hears words. Remembers in a file what it heard in which wave: most take longer to hear than to speak.

    The recogniser adapts to the waves that came before, so a wave's place in its list is part of the key.
    """

    def __init__(self, memory: Path, search: Sequence[str] = WORD_SEARCH):
        self._search = search
        if not shutil.which(PROGRAM):
            raise InputError(f"{PROGRAM} is not installed (Debian: pocketsphinx)")
        require_file(MODEL / "en-us.lm.bin", "install the English model (Debian: pocketsphinx-en-us)")
        self._memory = memory
        self._lists: dict[str, list[str]] = json.loads(memory.read_text()) if memory.exists() else {}
        self._processes = os.cpu_count() or 1

    def hear(self, waves: Sequence[np.ndarray]) -> list[str]:
        """The words of each wave (int16, 16 kHz); nothing where nothing is heard."""
        parts = [waves[i::LISTS] for i in range(LISTS)]
        with ThreadPoolExecutor(self._processes) as pool:
            heard = list(pool.map(self._hear_list, parts))
        self._memory.write_text(json.dumps(self._lists))
        return [heard[i % LISTS][i // LISTS] for i in range(len(waves))]

    def _hear_list(self, waves: Sequence[np.ndarray]) -> list[str]:
        if not waves:
            return []
        digest = hashlib.sha256()
        for wave in waves:
            digest.update(len(wave).to_bytes(8, "little") + np.asarray(wave, "<i2").tobytes())
        key = digest.hexdigest()
        if key not in self._lists:
            self._lists[key] = _recognise(waves, self._search)
        return self._lists[key]
