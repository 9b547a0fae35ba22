"""The wheel, installed in an empty virtual environment without network, and all that it needs inside it."""
import os
import re
import shutil
import subprocess
import sys
import unittest
import venv
import zipfile
from pathlib import Path

import backend
import repair
from support import WithFolder

MOST_BYTES = 60_000_000
SPEAK = """
import sys, shoal
assert sys.prefix in shoal.__file__, shoal.__file__
with shoal.Engine(threads=2, cache_dir="none") as engine:
    print(engine.speak("Hello there.", seed=7).duration > 0.3, list(engine.voices)[:1])
"""


@unittest.skipUnless(shutil.which("patchelf"), "patchelf is not installed")
class Wheel(WithFolder):
    def setUp(self):
        super().setUp()
        settings = {"build-dir": os.environ["PYTHON_TEST_BUILD"], "repair": "yes"}
        self.wheel = self.folder / backend.build_wheel(str(self.folder), settings)

    def test_installs_and_speaks_without_anything_else(self):
        self.assertLess(self.wheel.stat().st_size, MOST_BYTES)
        self.assertRegex(self.wheel.name, r"^shoal-[0-9.]+-py3-none-manylinux_2_\d+_x86_64\.whl$")
        self.assertNotIn("Requires-Dist", self.metadata())
        venv.create("empty", with_pip=True)
        python = self.folder / "empty/bin/python"
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(self.folder)}

        def run(*command, **options):
            return subprocess.run(command, check=True, capture_output=True, text=True, cwd="/", env=environment,
                                  **options).stdout

        run(python, "-m", "pip", "install", "--no-index", "--quiet", str(self.wheel))
        self.assertEqual(run(python, "-c", SPEAK), "True ['clara']\n")
        out = self.folder / "hello.wav"
        for program in ([python, "-m", "shoal"], [self.folder / "empty/bin/shoal"]):
            run(*program, "say", "Hello.", "-q", "-o", out)
        self.assertTrue(out.read_bytes().startswith(b"RIFF"))
        self.check_libraries(next((self.folder / "empty/lib").glob("python*/site-packages/shoal/native")), run)
        run(python, "-m", "pip", "uninstall", "--yes", "--quiet", "shoal")

    def metadata(self):
        with zipfile.ZipFile(self.wheel) as files:
            return files.read(next(name for name in files.namelist() if name.endswith("METADATA"))).decode()

    def check_libraries(self, native, run):
        """Every file finds all that it needs in the package, except the C and C++ runtime."""
        for file in [*(native / "bin").iterdir(), *(native / "lib").iterdir()]:
            for soname, path in re.findall(r"(\S+) => (\S+)", run("ldd", file)):
                if not repair.RUNTIME.match(soname):
                    self.assertEqual(Path(path).resolve().parent, (native / "lib").resolve(), (file, soname))
        if (native / "bin/shoal-phonemizer").exists():
            self.assertIn("həlˈ", run(native / "bin/shoal", "phonemize", "Hello"))
            self.assertTrue((native / "share/licences/libespeak-ng1").exists())


if __name__ == "__main__":
    unittest.main()
