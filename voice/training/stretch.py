"""One stretch of a training that is cut into several: its folders, its end, and how far the whole is."""
import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import torch

PROGRESS_FILE = "progress.json"
CARRIED_FILES = (
    "codec.safetensors",
    "codec_config.json",
    "codec_training.safetensors",
    "model.safetensors",
    PROGRESS_FILE,
)


class Stretch:
    """Where a stretch begins and what it leaves behind.

    work: large files on this machine, gone with it: shards and full states with those of the optimisers.
    out: what is enough to go on elsewhere: weights of half precision and progress.json.
    init: such a folder of an earlier stretch, copied where `out` has no progress yet.
    """

    def __init__(self, work: Path, out: Path, init: Path | None, deadline: float):
        self.work, self.out, self.deadline = work, out, deadline
        for folder in (work, out):
            folder.mkdir(parents=True, exist_ok=True)
        path = out / PROGRESS_FILE
        if init and not path.exists():
            for name in CARRIED_FILES:
                if (init / name).exists():
                    shutil.copy(init / name, out / name)
        self._progress: dict[str, float] = json.loads(path.read_text()) if path.exists() else {}

    def seconds_left(self) -> float:
        """Of this stretch."""
        return self.deadline - time.time()

    def progress(self, part: str) -> float:
        """Of a part of the training, 0 to 1."""
        return self._progress.get(part, 0.0)

    def set_progress(self, part: str, progress: float) -> None:
        """Written at once."""
        self._progress[part] = round(progress, 5)
        replace_file(self.out / PROGRESS_FILE, lambda path: path.write_text(json.dumps(self._progress)))

    def save_state(self, part: str, state: dict) -> None:
        """On this machine alone."""
        replace_file(self.work / f"{part}_state.pt", lambda path: torch.save(state, path))

    def load_state(self, part: str, device: str) -> dict | None:
        """What save_state wrote, if it is as new as progress.json says."""
        path = self.work / f"{part}_state.pt"
        if not path.exists():
            return None
        state = torch.load(path, map_location=device)
        return state if state["progress"] >= self.progress(part) else None


def replace_file(path: Path, write: Callable[[Path], object]) -> None:
    """`write` gets another path; the file appears whole."""
    temporary = path.with_suffix(".tmp")
    write(temporary)
    os.replace(temporary, path)
