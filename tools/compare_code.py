#!/usr/bin/env python3
"""Compares the code that two builds have made, function by function: for changes that must not change it, as moves.

usage: tools/compare_code.py BEFORE AFTER [--rename OLD=NEW ...]

BEFORE and AFTER are folders of object files, as build/cuda/src/ops. Files may have moved and been split: a function is
found by its name. Kernels are compared by their bytes, registers and shared memory, host functions by their
instructions. What only the lines of checks or the paths of sources change does not count. Exits with 1 on a difference.
"""
import argparse
import collections
import hashlib
import re
import struct
import subprocess
import sys
from pathlib import Path

# What nvcc makes of an unnamed namespace holds a hash of the source's path.
UNNAMED = re.compile(r"\d+_GLOBAL__N__[0-9a-f]{8}_\d+_\w+?_cu_[0-9a-f]{8}(?:_\d+)?")
# Made by nvcc for the file as a whole.
OF_FILE = re.compile(r"__sti_|cudaRegister|cudaUnregister|__nv_|_GLOBAL__sub_I")
FATBIN, CUBIN, COMPRESSED = 0xBA55ED50, 2, 0x8000


def run(*command: str, text: str | None = None) -> str:
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def sections(elf: bytes) -> list[tuple[str, int, bytes]]:
    """Name, info and bytes of each section of a 64-bit ELF file."""
    start, = struct.unpack_from("<Q", elf, 40)
    size, count, names = struct.unpack_from("<HHH", elf, 58)
    headers = [struct.unpack_from("<IIQQQQIIQQ", elf, start + i * size) for i in range(count)]
    names_at = headers[names][4]
    found = []
    for name, kind, _, _, offset, length, _, info, _, _ in headers:
        end = elf.index(b"\0", names_at + name)
        data = struct.pack("<Q", length) if kind == 8 else elf[offset:offset + length]  # no bits: its size
        found.append((elf[names_at + name:end].decode(), info, data))
    return found


def cubins(elf: bytes):
    """The GPU's programs in an object file, with their architecture."""
    for name, _, data in sections(elf):
        at = 0
        while name == ".nv_fatbin" and at + 16 <= len(data):
            magic, _, header, size = struct.unpack_from("<IHHQ", data, at)
            if magic != FATBIN:
                at += 8
                continue
            entry, at = at + header, at + header + size
            while entry < at:
                kind, _, header, stored, packed = struct.unpack_from("<HHIQI", data, entry)
                arch, = struct.unpack_from("<I", data, entry + 28)
                flags, = struct.unpack_from("<Q", data, entry + 40)
                program = data[entry + header:entry + header + stored]
                if kind == CUBIN:
                    if flags & COMPRESSED:
                        program = subprocess.run(["zstd", "-dc"], input=program[:packed], capture_output=True, check=True).stdout
                    yield arch, program
                entry += header + stored


def kernels(elf: bytes) -> list[tuple[str, str]]:
    found = []
    for arch, program in cubins(elf):
        for name, info, data in sections(program):
            part = re.match(r"\.(text|nv\.constant0|nv\.shared|nv\.global(?:\.init)?)\.?(.*)", name)
            if not part or not (part.group(2) or part.group(1).startswith("nv.global")):
                continue
            registers = info >> 24 if part.group(1) == "text" else 0
            found.append((f"sm_{arch} {part.group(1)} {UNNAMED.sub('12_GLOBAL__N_1', part.group(2))}",
                          f"{digest(data)}:{registers}"))
    return found


def host_functions(path: Path) -> list[tuple[str, str]]:
    text = run("objdump", "-dr", "--no-show-raw-insn", "--no-addresses", str(path))
    text = run("c++filt", text=re.sub(r"_Z\d+__device_stub", "_Z__device_stub", UNNAMED.sub("12_GLOBAL__N_1", text)))
    found = []
    for block in re.split(r"\n(?=<)", text)[1:]:
        name, _, body = block.partition("\n")
        if OF_FILE.search(name):
            continue
        body = re.sub(r"-?0x[0-9a-f]+\(%rip\)([^#\n]*)# <(.*)>", r"\1 \2", body)  # by name instead of distance
        body = re.sub(r"\s*#.*|\n\s*nop.*|\n\s*(?:cs nopw|data16|xchg +%ax,%ax).*|\nDisassembly.*", "", body)
        # Where a string lies among those of its file, and the line of a check.
        body = re.sub(r"\.LC\d+", ".LC", body)
        body = re.sub(r"(\.(?:rodata|data|bss|text|L)[\w.]*|_ZZ\S+)[+-]0x[0-9a-f]+", r"\1", body)
        if "check_failed" in body:
            body = re.sub(r"mov +\$0x[0-9a-f]+,%edx", "mov LINE,%edx", body)
        found.append((name.rstrip(":"), re.sub(r"\s+", " ", body)))
    return found


def code_of(folder: Path, renames: list[str]) -> dict[str, collections.Counter]:
    code = collections.defaultdict(collections.Counter)
    objects = sorted(folder.rglob("*.o"))
    if not objects:
        sys.exit(f"{folder}: no object files")
    for path in objects:
        on_gpu = kernels(path.read_bytes())
        names = run("c++filt", text="\n".join(name for name, _ in on_gpu)).split("\n") if on_gpu else []
        for name, body in [*zip(names, (body for _, body in on_gpu)), *host_functions(path)]:
            for rename in renames:
                old, _, new = rename.partition("=")
                name, body = (re.sub(rf"\b{old}\b", new, of) for of in (name, body))
            code[name][digest(body.encode())] += 1
    return code


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--rename", action="append", default=[], metavar="OLD=NEW")
    options = parser.parse_args()
    before, after = code_of(options.before, options.rename), code_of(options.after, options.rename)
    differences = sorted(name for name in before.keys() | after.keys() if before[name] != after[name])
    for name in differences:
        place = "before" if not after[name] else "after" if not before[name] else None
        print(f"only {place}: {name}" if place else f"differs: {name}")
    on_gpu = sum(name.startswith("sm_") for name in before)
    print(f"{on_gpu} parts of kernels, {len(before) - on_gpu} host functions, {len(differences)} differences")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
