"""Puts the package together: its Python files, and under native/ what the build made, laid out like an installation.

    native/lib/libshoal.so    native/bin/shoal, shoal-phonemizer    native/share/shoal/voice

usage: stage.py BUILD_DIR FOLDER     links everything into FOLDER/shoal, for tests: PYTHONPATH=FOLDER
"""
import fnmatch
import os
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = ROOT / "bindings" / "python" / "shoal"
# As CMake installs the voice (src/cli/CMakeLists.txt).
VOICE_FILES = ("*.safetensors", "*.json", "*.tiktoken", "*.opus", "*.lab", "MODEL_CARD.md", "NOTICE.flite")
VOICE_WITHOUT = {"goldens", "training", "evaluation"}


def package_files():
    """(file, path below shoal/) of every Python file."""
    for file in sorted(PACKAGE.rglob("*")):
        if file.suffix == ".py" or file.name == "py.typed":
            yield file, file.relative_to(PACKAGE)


def voice_files():
    """(file, path below the voice's folder)."""
    voice = ROOT / "voice"
    for file in sorted(voice.rglob("*")):
        below = file.relative_to(voice)
        if file.is_file() and below.parts[0] not in VOICE_WITHOUT and any(
                fnmatch.fnmatch(file.name, pattern) for pattern in VOICE_FILES):
            yield file, below


def native_files(build_dir):
    """(file, path below shoal/native). The phonemizer is absent from builds without libespeak-ng, the program from
    those under a sanitizer."""
    build = Path(build_dir)
    library = build / "libshoal.so"
    if not library.exists():
        raise SystemExit(f"{library} is not there; build the targets shoal and shoal_shared first")
    yield library.resolve(), Path("lib/libshoal.so")
    for program in (build / "src/cli/shoal", build / "src/text/phonemizer/shoal-phonemizer"):
        if program.exists():
            yield program, Path("bin") / program.name
    for file, below in voice_files():
        yield file, Path("share/shoal/voice") / below


def stage(build_dir, folder, link=False):
    """Makes FOLDER/shoal anew, of copies or of links."""
    package = Path(folder) / "shoal"
    shutil.rmtree(package, ignore_errors=True)
    everything = [*package_files(), *((file, "native" / below) for file, below in native_files(build_dir))]
    for file, below in everything:
        target = package / below
        target.parent.mkdir(parents=True, exist_ok=True)
        if link:
            os.symlink(file.resolve(), target)
        else:
            shutil.copy2(file, target)
    return package


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    stage(sys.argv[1], sys.argv[2], link=True)
