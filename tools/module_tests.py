#!/usr/bin/env python3
"""Runs the test programs of modules, each in a few shards at once, and prints their counts.

A process for each shard, not for each test as ctest has it: much of a short test is its start, the more under a
sanitizer or if it needs an engine.
"""
import argparse
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as xml
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SHARDS = os.cpu_count() + 1  # at once: some wait for what is to take its time
LIMIT_S = 1800  # of one shard: it ends hangs, nothing else
SHOWN = 120     # lines of the log of a shard that failed
ON_A_GPU = "*/cuda*"  # what ctest registers for builds with CUDA alone


def all_modules(build):
    """Those whose tests ctest has, with the label of shoal_module()."""
    listed = subprocess.run(["ctest", "--test-dir", build, "-N", "-L", "^module$"], check=True, capture_output=True, text=True)
    return sorted(set(re.findall(r"^ *Test +#\d+: (\w+)\.", listed.stdout, re.MULTILINE)))


def program_of(build, module):
    found = [path for room in ("src", "bench") for path in build.glob(f"{room}/**/{module}_test") if path.is_file()]
    if len(found) != 1:
        sys.exit(f"module_tests.py: {len(found)} programs {module}_test in {build}")
    return found[0]


def run(program, left_out, shard, folder):
    """Exit status and counts (tests, failed, skipped) of one shard."""
    name = f"{program.name}.{shard}"
    report, log = folder / f"{name}.xml", folder / f"{name}.log"
    report.unlink(missing_ok=True)
    environment = {**os.environ, "GTEST_TOTAL_SHARDS": str(SHARDS), "GTEST_SHARD_INDEX": str(shard),
                   "GTEST_OUTPUT": f"xml:{report}", "GTEST_COLOR": "no"}
    with open(log, "w") as out:
        try:
            status = subprocess.run([program, f"--gtest_filter=-{ON_A_GPU}:{left_out}"], env=environment, stdout=out,
                                    stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, timeout=LIMIT_S).returncode
        except subprocess.TimeoutExpired:
            status = f"none after {LIMIT_S} s"
    cases = list(xml.parse(report).iter("testcase")) if report.exists() else []
    failed = sum(case.find("failure") is not None for case in cases)
    skipped = sum(case.find("skipped") is not None for case in cases)
    if status != 0:
        lines = log.read_text(errors="replace").splitlines()
        named = [line for line in lines if line.startswith("[  FAILED  ]")]
        print("\n".join([f"--- {name}: exit status {status}; {log} ends with:", *lines[-SHOWN:], *named]), flush=True)
    return status, (len(cases), failed, skipped)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("preset", help="whose build is there: asan, tsan, release")
    parser.add_argument("modules", nargs="*", metavar="module", help="base, ops, ...: its program is called MODULE_test; default: all")
    parser.add_argument("--without", action="append", default=[], metavar="PROGRAM:FILTER",
                        help="tests that are left out, in GoogleTest's form: runtime_test:Determinism.*:Voices.*")
    return parser.parse_args()


def main():
    asked = arguments()
    preset = asked.preset
    left_out = dict(entry.split(":", 1) for entry in asked.without)
    build = Path(__file__).resolve().parent.parent / "build" / preset
    folder = build / "module_tests"
    folder.mkdir(exist_ok=True)
    programs = [program_of(build, module) for module in asked.modules or all_modules(build)]
    if unknown := left_out.keys() - {program.name for program in programs}:
        sys.exit(f"module_tests.py: --without names what does not run: {', '.join(unknown)}")
    with ThreadPoolExecutor(SHARDS) as pool:
        shards = [(program, [pool.submit(run, program, left_out.get(program.name, ""), shard, folder) for shard in range(SHARDS)])
                  for program in programs]
        totals, bad = [0, 0, 0], 0
        for program, futures in shards:
            outcomes = [future.result() for future in futures]
            counts = [sum(column) for column in zip(*(outcome[1] for outcome in outcomes))]
            bad += sum(outcome[0] != 0 for outcome in outcomes)
            totals = [total + count for total, count in zip(totals, counts)]
            tests, failed, skipped = counts
            print(f"{preset}: {program.name}: {tests - failed - skipped} passed, {failed} failed, {skipped} skipped", flush=True)
    tests, failed, skipped = totals
    print(f"{preset}: {tests} tests: {tests - failed - skipped} passed, {failed} failed, {skipped} skipped; "
          f"{bad} processes failed")
    sys.exit(1 if bad or not tests else 0)


if __name__ == "__main__":
    main()
