"""The build backend of `pip install .` (PEP 517). It needs no package: CMake builds, the standard library packs.

Settings (pip's --config-settings NAME=VALUE):
    build-dir   a build that is there already (default: build/python, which is made)
    repair      yes: also pack the shared libraries, for other machines (what tools/wheel.sh does)
"""
import os
import subprocess
import tarfile
import tempfile
from pathlib import Path

import repair
import wheel
from stage import ROOT, stage

OWN_BUILD = ROOT / "build" / "python"
NATIVE_PLATFORM = f"linux_{os.uname().machine}"


def get_requires_for_build_wheel(config_settings=None):
    return []


def get_requires_for_build_sdist(config_settings=None):
    return []


def build():
    """Builds the library and the program in build/python."""
    def run(*command):
        subprocess.run(command, cwd=ROOT, check=True)

    run("cmake", "--preset", "release", "-DSHOAL_TESTS=OFF", "-B", str(OWN_BUILD))
    run("cmake", "--build", str(OWN_BUILD), "--target", "shoal", "shoal_shared", "--parallel", str(os.cpu_count()))
    return OWN_BUILD


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    settings = dict(config_settings or {})
    build_dir = settings.pop("build-dir", None)
    wants_repair = settings.pop("repair", "no")
    if settings or wants_repair not in ("yes", "no"):
        raise SystemExit(f"config settings: expected build-dir=FOLDER, repair=yes or no, got {config_settings}")
    build_dir = (ROOT / build_dir) if build_dir else build()
    with tempfile.TemporaryDirectory() as folder:
        package = stage(build_dir, folder)
        platform = repair.repair(package, build_dir) if wants_repair == "yes" else NATIVE_PLATFORM
        return wheel.write_wheel(package, wheel_directory, platform).name


def build_sdist(sdist_directory, config_settings=None):
    """Every file of the checkout that git knows."""
    base = f"{wheel.NAME}-{wheel.version()}"
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True).stdout
    with tarfile.open(Path(sdist_directory) / f"{base}.tar.gz", "w:gz") as out:
        for name in names.decode().split("\0")[:-1]:
            out.add(ROOT / name, f"{base}/{name}")
    return f"{base}.tar.gz"
