#!/usr/bin/env python3
"""Holds the C interface against the list of what programs were promised (shoal_0.1.txt): the symbols that libshoal.so
shows with their versions, the layout of structs, and the header's functions, which are all exported.

usage: abi_test.py LIBRARY LAYOUT_PROGRAM [--write]      --write: the list is made anew; look at what changed
"""
import difflib
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
LIST = HERE / "shoal_0.1.txt"
HEADER = HERE.parents[1] / "include/shoal/shoal.h"


def output_of(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def exported(library: str) -> list[str]:
    """NAME@@VERSION of all defined dynamic symbols, without the versions' own."""
    lines = output_of("nm", "--dynamic", "--defined-only", "--with-symbol-versions", library).splitlines()
    return sorted(line.split()[-1] for line in lines if " A " not in line)


def main() -> int:
    library, layout = sys.argv[1:3]
    symbols = exported(library)
    ours = [name for name in symbols if name.startswith("shoal_")]
    found = [f"symbol {name}" for name in ours] + output_of(layout).splitlines()
    if "--write" in sys.argv:
        LIST.write_text("\n".join(found) + "\n")
    problems = list(difflib.unified_diff(LIST.read_text().splitlines(), found, "promised", "found", lineterm="", n=0))

    declared = set(re.findall(r"\b(shoal_\w+)\(", re.sub(r"//[^\n]*", "", HEADER.read_text())))
    names = {name.split("@")[0] for name in ours}
    problems += [f"{name} is declared but not exported" for name in sorted(declared - names)]
    problems += [f"{name} is exported but not declared" for name in sorted(names - declared)]
    # Nothing of the libraries inside, and of our own C++ only what include/shoal declares.
    problems += [f"{name} is exported by accident" for name in symbols
                 if name not in ours and not name.endswith("@@SHOAL_CXX_0.1")]
    print("\n".join(problems) or f"{len(ours)} functions and {len(found) - len(ours)} lines of layout as promised")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
