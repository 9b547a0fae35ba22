#!/usr/bin/env python3
"""Checks the arrows of docs/ARCHITECTURE.md: a folder of src/ or bench/ includes only the folders it may know, CUDA
and JSON headers stay where they belong, models and runtime name no device, a header that only tests include is named
x_testing.h and no product code includes it, and every header compiles alone.

usage: tools/check_includes.py [--no-compile]
"""
import argparse
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SRC = ROOT / "src"
PUBLIC = ROOT / "include"

# What each folder may include, besides itself. Order is from the bottom up. bench/ lies beside src/.
MODELS = ["base", "tensor", "weights", "ops", "models/dual_ar", "models/dac", "models/kokoro"]
# runtime/families itself has one source, the only one that knows every family, and tests of all of them.
FAMILIES = ["runtime/families/language", "runtime/families/kokoro"]
RUNTIME = ["runtime/engine", "runtime/families", *FAMILIES, "runtime/batching", "runtime/kv", "runtime/schedule", "runtime/voices"]
MAY_INCLUDE = {
    "base": [],
    "tensor": ["base"],
    "weights": ["base", "tensor"],
    "ops": ["base", "tensor"],
    "models/dual_ar": ["base", "tensor", "weights", "ops"],
    "models/dac": ["base", "tensor", "weights", "ops"],
    "models/kokoro": ["base", "tensor", "weights", "ops"],
    "text": ["base"],
    "text/phonemes": ["base", "text"],
    "text/ssml": ["base", "text"],
    "text/phonemizer": ["text/phonemes"],
    "audio": ["base"],
    "bench": MODELS,
    "runtime/batching": ["base"],
    "runtime/kv": ["base"],
    "runtime/schedule": ["base"],
    "runtime/voices": ["base", "tensor", "models/dac", "text", "audio"],
    "runtime/engine": ["base", "tensor", "weights", "ops", "text", "audio", "runtime/voices"],
    "runtime/families/language": ["base", "tensor", "weights", "ops", "models/dual_ar", "models/dac", "text", "audio", "runtime/engine", "runtime/kv", "runtime/schedule", "runtime/voices"],
    "runtime/families/kokoro": ["base", "tensor", "weights", "ops", "models/kokoro", "text", "text/phonemes", "audio", "runtime/engine", "runtime/batching"],
    "runtime/families": ["base", "runtime/engine", *FAMILIES],
    "settings": ["base"],
    # A writer of JSON is all that they need of the server.
    "report": ["base", "server/body"],
    "capi": ["base", "settings", "audio", "report", "server/body"],
    "triton": ["base", "server/body"],  # of the engine only the C interface
    "server/http": ["base"],
    "server/body": ["base"],
    "server/access": ["base", "settings", "server/http", "server/body"],
    "server/observe": ["base", "server/http"],
    "server/page": ["base"],
    "server/routes": ["base", "audio", "text", "text/ssml", "weights", "settings", "report", "server/http", "server/body", "server/access", "server/observe", "server/page"],
    "server/wyoming": ["base", "audio", "server/http", "server/body", "server/access", "server/observe", "server/routes"],
    "server": ["base", "settings", "server/http", "server/body", "server/access", "server/observe", "server/routes", "server/wyoming"],
    "fleet": ["base"],  # processes, nothing of speech
    "fleet/routes": ["base", "fleet", "server/http", "server/body", "server/access"],
    # Random weights are measured without an engine: threads and the dtype that a precision means are the engine's.
    "bench/speech": ["base", "ops", "runtime/engine", "bench"],
    "bench/measure": ["base"],
    "bench/engine": ["base", "bench", "bench/measure"],
    "bench/runs": ["base", "bench/measure"],
    "bench/suite": ["base", "bench", "bench/speech", "bench/measure", "bench/runs"],
    # Pairs of models, through the public API.
    "bench/quality": ["base", "bench/measure"],
    "bench/load": ["base", "bench/measure", "bench/runs"],  # HTTP and containers of sound, nothing of engines
    # The command line programs against include/shoal, as any program could. Besides:
    "cli": [
        "base",
        "settings",  # OpenAI's names of voices; which settings a reload can change
        "audio",  # `say` writes files; a clip that is read costs at most so many bytes
        "text", "text/phonemes",  # `normalize` and `phonemize` run no model
        "bench", "bench/speech", "bench/measure", "bench/engine", "bench/runs", "bench/suite", "bench/load",  # `bench`
        "bench/quality",  # `evaluate`
        "report", "server/body",  # what `inspect` prints as JSON
        "server", "server/observe",  # `serve`
        "fleet", "fleet/routes", "server/http", "server/access",  # `fleet`, `ready`
    ],
}
# The rooms of each backend of ops, from the bottom up, and the others of the backend that each may include besides
# ops/*.h. The sources of ops check and call: they reach both backends through cpu_backend.h and cuda_backend.h.
CUDA_BASE = ["ptx", "device", "rows"]
GEMM_KERNELS = ["gemm/operands", "gemm/skinny", "gemm/tile", "gemm/sm90", "gemm/f32"]
ROOMS = {
    "ops/cuda": {
        "ptx": [],
        "device": ["ptx"],
        "rows": ["ptx", "device"],
        "gemm/operands": CUDA_BASE,
        **{room: [*CUDA_BASE, "gemm/operands"] for room in GEMM_KERNELS[1:]},
        "gemm": [*CUDA_BASE, *GEMM_KERNELS],
        "attention": [*CUDA_BASE, "gemm/operands", "gemm/sm90"],
        "conv": [*CUDA_BASE, "gemm", *GEMM_KERNELS],
        "sampling": CUDA_BASE,
        "sequence": CUDA_BASE,
    },
    "ops/cpu": {
        "kernels": [],
        "simd": [],
        "rows": ["kernels", "simd"],
        "gemm": ["kernels"],
        "attention": ["kernels", "simd", "rows"],
        "sampling": ["kernels", "simd", "rows"],
        "sequence": ["kernels", "simd", "rows"],
        "isa": ["kernels", "simd", "rows", "attention", "sampling", "sequence"],
    },
}
for backend, rooms in ROOMS.items():
    for at, (room, others) in enumerate(rooms.items()):
        assert set(others) <= set([*rooms][:at]), f"{backend}/{room} includes what stands above it"
        MAY_INCLUDE[f"{backend}/{room}"] = [*MAY_INCLUDE["ops"], "ops", *(f"{backend}/{other}" for other in others)]
MAY_INCLUDE["ops/no_cuda"] = [*MAY_INCLUDE["ops"], "ops"]
# Headers of include/shoal may be read by these; error.h by everybody.
PUBLIC_READERS = (*RUNTIME, "settings", "report", "capi", "triton", "server", "server/observe", "server/routes", "server/wyoming", "bench/speech", "bench/engine", "bench/suite", "bench/quality", "cli", "examples")
# Third-party headers that only some places may see.
RESTRICTED = {
    r"^nlohmann/": ["base/json.cc", "bench/", "cli/", "server/"],
    r"^(cuda|cublas|cudnn|nccl)": ["tensor/cuda/", "ops/cuda/"],
    r"^(sndfile|FLAC/|opus|lame/|soxr|sonic)": ["audio/"],
    r"^(pcre2|utf8proc)": ["text/"],
    r"^expat": ["text/ssml/"],
    r"^espeak-ng/": ["text/phonemizer/"],
    r"^(openssl/|xxhash)": ["runtime/", "server/", "bench/load/"],
    r"^boost/beast": ["server/http/", "bench/load/"],
    r"^boost/": ["server/", "bench/load/"],
    r"^(prometheus/|spdlog/)": ["server/observe/"],
    r"^toml\+\+": ["settings/"],
}
# Written once for every device: contexts and tensors carry it through, and only ops asks which one it is. The
# names of settings are the user's.
# (cuda_graphs is a setting.)
DEVICE_FREE = ("models/", "runtime/")
DEVICE_NAME = re.compile(r'\bDeviceKind\b|\b(?!cuda_graphs\b)\w*cuda\w*|\bcpu::|"ops/cpu/', re.IGNORECASE)
# Who may include x_testing.h. ops/ref/ has the plain versions of the ops: for tests too, under a name of their own.
FOR_TESTS = re.compile(r"_(test|testing|bench)$")
TEST_FOLDERS = ("tests/", "fuzz/", "src/ops/ref/")
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]', re.MULTILINE)


def folder_of(path: str) -> str | None:
    """The module of a path as it is included: relative to src/, or to the root for bench/."""
    return next((name for name in sorted(MAY_INCLUDE, key=len, reverse=True) if path.startswith(name + "/")), None)


def may_include(module: str, target: str | None, path: Path) -> bool:
    if target == module or target in MAY_INCLUDE[module]:
        return True
    # Tests and benches compare kernels of all rooms, and backends with each other.
    for_tests = FOR_TESTS.search(path.stem) is not None
    return for_tests and module.startswith("ops") and (target or "").startswith("ops/")


def check_file(path: Path) -> list[str]:
    relative = path.relative_to(SRC if path.is_relative_to(SRC) else ROOT).as_posix()
    module = folder_of(relative)
    if module is None or module == "ops" and relative.count("/") > 1 and not relative.startswith("ops/ref/"):
        return [f"{relative}: lies in no known folder of src/ (add it to tools/check_includes.py)"]
    problems = []
    is_test = path.stem.endswith("_test")
    text = path.read_text()
    for quote, name in INCLUDE.findall(text):
        if name.startswith("shoal/"):
            if name != "shoal/error.h" and module not in PUBLIC_READERS:
                problems.append(f"{relative}: includes {name}, but {module} lies below the public API")
            continue
        target = folder_of(name)
        if quote == '"' and not may_include(module, target, path):
            if not (is_test and name.startswith(("weights/", "tests/"))):  # tests may read goldens
                problems.append(f"{relative}: includes {name}, but {module} may not know {target or 'that folder'}")
        for pattern, places in RESTRICTED.items():
            if re.match(pattern, name) and not any(relative.startswith(place) for place in places):
                problems.append(f"{relative}: includes <{name}>, allowed only in {', '.join(places)}")
    if relative.startswith(DEVICE_FREE) and not is_test:
        names = sorted({found.group() for found in DEVICE_NAME.finditer(COMMENT.sub("", text))})
        problems += [f"{relative}: names a device or backend: {name}" for name in names]
    return problems


def is_for_tests(path: Path) -> bool:
    return FOR_TESTS.search(path.stem) is not None or path.relative_to(ROOT).as_posix().startswith(TEST_FOLDERS)


def check_names_of_test_headers(files: list[Path]) -> list[str]:
    """A header is named x_testing.h if and only if tests alone include it; its source is named x_testing.cc."""
    readers: dict[Path, list[Path]] = {}
    for path in files:
        for quote, name in INCLUDE.findall(path.read_text()):
            header = next((root / name for root in (SRC, ROOT) if quote == '"' and (root / name).is_file()), None)
            if header:
                readers.setdefault(header, []).append(path)
    problems = []
    for header, paths in readers.items():
        # The source that implements a header does not count as its user.
        users = [path for path in paths if path != header.with_suffix(".cc")]
        product = [path.relative_to(ROOT).as_posix() for path in paths if not is_for_tests(path)]
        name = header.relative_to(ROOT).as_posix()
        if header.stem.endswith("_testing"):
            problems += [f"{path}: includes {name}, which is for tests only" for path in product]
        elif users and all(is_for_tests(path) for path in users) and not is_for_tests(header):
            problems.append(f"{name}: only tests include it, so its name must be {header.stem}_testing{header.suffix}")
    return problems


def check_public_header(path: Path) -> list[str]:
    """The API stands alone: its headers know each other and the standard library."""
    return [f"{path.relative_to(ROOT)}: includes {name}, but a public header may not"
            for quote, name in INCLUDE.findall(path.read_text()) if "/" in name and not name.startswith("shoal/")]


def cuda_headers() -> Path | None:
    """Where the CUDA toolkit's headers lie, if it is installed. An nvcc on the path may be a wrapper of the real one."""
    nvcc = shutil.which("nvcc")
    roots = [Path("/usr/local/cuda"), *([Path(nvcc).resolve().parent.parent] if nvcc else [])]
    return next((root / "include" for root in roots if (root / "include/cuda_runtime.h").exists()), None)


CUDA_HEADERS = cuda_headers()


def compiles_alone(header: Path) -> str | None:
    command = [os.environ.get("CXX", "g++"), "-std=c++20", "-fsyntax-only", "-x", "c++", f"-I{SRC}", f"-I{ROOT}", f"-I{PUBLIC}",
               '-DSHOAL_SOURCE_DIR="."', *([f"-isystem{CUDA_HEADERS}"] if CUDA_HEADERS else [])]
    result = subprocess.run([*command, str(header)], capture_output=True, text=True)
    if result.returncode == 0:
        return None
    return f"{header.relative_to(ROOT)} does not compile alone:\n{result.stderr}"


def compiled_by_its_source(header: Path) -> bool:
    """A source that includes its own header before anything else shows with every build that it stands alone."""
    source = header.with_suffix(".cc")
    first = source.is_file() and INCLUDE.search(source.read_text())
    return bool(first) and first.group(2) == header.relative_to(SRC if SRC in header.parents else ROOT).as_posix()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--no-compile", action="store_true", help="skip compiling each header alone")
    options = parser.parse_args()

    files = [path for root in (SRC, ROOT / "bench") for path in root.rglob("*")]
    sources = sorted(path for path in files if path.suffix in {".h", ".cc", ".cu", ".cuh"})
    public = sorted(PUBLIC.rglob("*.h"))
    problems = [problem for path in sources for problem in check_file(path)]
    problems += [problem for path in public for problem in check_public_header(path)]
    others = [path for folder in ("tests", "fuzz", "examples") for path in (ROOT / folder).rglob("*.*")]
    problems += check_names_of_test_headers(sources + [path for path in others if path.suffix in {".h", ".cc"}])
    if not options.no_compile:
        # Headers of one instruction set need its compiler flags; their own .cc files compile them.
        headers = public + [p for p in sources if p.suffix == ".h" and not re.search(r"_(avx|amx|neon)", p.stem)]
        if not CUDA_HEADERS:
            headers = [p for p in headers if "/cuda/" not in p.as_posix()]
        headers = [p for p in headers if not compiled_by_its_source(p)]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            problems += [problem for problem in pool.map(compiles_alone, headers) if problem]
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"{len(sources) + len(public)} files checked, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
