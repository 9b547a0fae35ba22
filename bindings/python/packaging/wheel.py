"""Writes a wheel: a zip of the package and of its metadata (PEP 427). The same files give the same bytes."""
import base64
import hashlib
import re
import zipfile
from pathlib import Path

from stage import ROOT

NAME = "shoal"
SUMMARY = "Text to speech: Fish-Speech / OpenAudio S1-mini, Kokoro-82M and a small English voice of its own"
DATE = (1980, 1, 1, 0, 0, 0)


def version():
    return re.search(r"project\(shoal VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text()).group(1)


def metadata():
    fields = [
        "Metadata-Version: 2.1", f"Name: {NAME}", f"Version: {version()}", f"Summary: {SUMMARY}",
        "License: Apache-2.0", "Requires-Python: >=3.9", "Classifier: Operating System :: POSIX :: Linux",
        "Classifier: Programming Language :: Python :: 3", "Classifier: Typing :: Typed",
        "Description-Content-Type: text/markdown", "", (ROOT / "docs/PYTHON.md").read_text(),
    ]
    return "\n".join(fields)


def wheel_name(platform):
    return f"{NAME}-{version()}-py3-none-{platform}.whl"


def dist_info():
    return f"{NAME}-{version()}.dist-info"


def metadata_files(platform):
    """Name below the dist-info folder -> text."""
    return {
        "METADATA": metadata(),
        "WHEEL": f"Wheel-Version: 1.0\nGenerator: shoal\nRoot-Is-Purelib: false\nTag: py3-none-{platform}\n",
        "entry_points.txt": "[console_scripts]\nshoal = shoal.__main__:main\n",
        "LICENSE": (ROOT / "LICENSE").read_text(),
    }


def write_wheel(package, folder, platform):
    """The wheel of a staged package in FOLDER; returns its path."""
    path = Path(folder) / wheel_name(platform)
    record = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as out:
        def add(name, data, mode):
            entry = zipfile.ZipInfo(name, DATE)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100000 | mode) << 16
            out.writestr(entry, data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{name},sha256={digest},{len(data)}")

        for file in sorted(package.rglob("*")):
            if file.is_file():
                add(f"{NAME}/{file.relative_to(package).as_posix()}", file.read_bytes(), file.stat().st_mode & 0o755)
        for name, text in metadata_files(platform).items():
            add(f"{dist_info()}/{name}", text.encode(), 0o644)
        record.append(f"{dist_info()}/RECORD,,\n")
        entry = zipfile.ZipInfo(f"{dist_info()}/RECORD", DATE)
        entry.external_attr = 0o100644 << 16
        out.writestr(entry, "\n".join(record))
    return path
