"""What the tests share. They run against a staged package (packaging/stage.py) that is on the PYTHONPATH."""
import json
import os
import random
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import shoal
from shoal._library import NATIVE

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = Path(NATIVE) / "bin" / "shoal"
# Requests have time enough under a sanitizer on a busy machine, too.
SETTINGS = {"threads": 2, "cache_dir": "none", "request_timeout_s": 600}
LONG = "This goes on and on, and nobody knows when it will end. " * 60

needs_program = unittest.skipUnless(PROGRAM.exists(), "this build has no program")


def numpy_or_none():
    try:
        import numpy
        return numpy
    except ImportError:
        return None


class WithFolder(unittest.TestCase):
    """A fresh working folder for each test."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)
        self.folder = Path(folder.name)


class WithEngine(WithFolder):
    """One engine for all tests of a class."""

    @classmethod
    def setUpClass(cls):
        cls.voices_folder = tempfile.TemporaryDirectory()
        cls.engine = shoal.Engine(references_dir=cls.voices_folder.name, **SETTINGS)

    @classmethod
    def tearDownClass(cls):
        cls.engine.close()
        cls.voices_folder.cleanup()

    def assert_idle(self):
        """Nothing of an earlier request is left in the engine."""
        import time
        until = time.monotonic() + 120
        while any(self.engine.stats()["queue"].values()):
            self.assertLess(time.monotonic(), until, self.engine.stats()["queue"])
            time.sleep(0.005)


def tiny_kokoro(folder):
    """A Kokoro model with random weights: two voices, and no dictionary. Returns its folder."""
    model = Path(folder) / "kokoro"
    (model / "voices").mkdir(parents=True)
    for file in ("config.json", "kokoro-v1_0.pth"):
        os.symlink(ROOT / "tests/data/kokoro/set_a" / file, model / file)
    width = 2 * json.loads((model / "config.json").read_text())["style_dim"]
    for number, name in enumerate(("af_one", "bf_two")):
        draw = random.Random(number)
        styles = [draw.gauss(0, 0.1) for _ in range(510 * width)]
        (model / "voices" / f"{name}.bin").write_bytes(struct.pack(f"{len(styles)}f", *styles))
    return model


def run_python(code, *, timeout=120, **options):
    """A Python program of its own with the same package. Newer Pythons warn of any fork beside threads."""
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", code]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, **options)


def say(*arguments):
    """`shoal say`, with the settings of the tests."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SHOAL_")}
    subprocess.run([str(PROGRAM), "say", "--quiet", "--threads", "2", "--cache-dir", "none", *arguments], check=True,
                   env=environment)


def resident_kib():
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    raise AssertionError("no VmRSS")
