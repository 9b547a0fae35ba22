#!/usr/bin/env python3
"""The steps of tools/gpu.sh as a short table and as summary.json; exits with 1 if anything failed.

usage: tools/gpu_table.py DIR
"""
import json
import re
import sys
from pathlib import Path


def json_in(text: str) -> object | None:
    """The JSON document that a log holds after its remarks, if it does."""
    start = re.search(r"^\{", text, re.MULTILINE)
    if not start:
        return None
    try:
        return json.JSONDecoder().raw_decode(text[start.start():])[0]
    except json.JSONDecodeError:
        return None


def tests_of(report: dict) -> dict:
    """Counts and the names of what failed, of a report that GoogleTest wrote."""
    cases = [case for suite in report["testsuites"] for case in suite["testsuite"]]
    failed = [f'{case["classname"]}.{case["name"]}' for case in cases if case.get("failures")]
    # A program that skips as a whole leaves tests "completed" that never began.
    ran = sum(case["result"] == "COMPLETED" and not case["timestamp"].startswith("1970-") for case in cases)
    return {"passed": ran - len(failed), "failed": failed, "skipped": len(cases) - ran}


def describe(folder: Path, name: str, kind: str, status: str) -> dict:
    log = folder / f"{name}.log"
    text = log.read_text(errors="replace") if log.exists() else ""
    ended = {"0": "ok", "124": "timed out", "137": "killed"}.get(status, status if " " in status else f"status {status}")
    step = {"name": name, "kind": kind, "ended": ended, "note": ""}
    report = folder / f"{name}.json"
    if kind == "test" and report.exists():
        step |= tests_of(json.loads(report.read_text()))
        if step["ended"] == "ok" and step["skipped"] and not step["passed"]:
            step["ended"] = "all skipped"
        step["note"] = f'{step["passed"]} passed, {len(step["failed"])} failed, {step["skipped"]} skipped'
        if step["failed"]:
            step["note"] += ": " + ", ".join(step["failed"][:3]) + (", ..." if len(step["failed"]) > 3 else "")
    elif kind == "sanitizer":
        summary = re.findall(r"(?:ERROR|RACECHECK) SUMMARY: (.*)", text)
        step["note"] = ", ".join(sorted(set(summary))) or "no summary"
    elif kind == "bench" and (figures := json_in(text)) is not None:
        report.write_text(json.dumps(figures, indent=1))
        step["note"] = str(report)
    return step


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    folder = Path(sys.argv[1])
    steps = []
    for line in (folder / "steps.tsv").read_text().splitlines():
        name, kind, status, seconds = line.split("\t")
        steps.append(describe(folder, name, kind, status) | {"seconds": int(seconds)})
    (folder / "summary.json").write_text(json.dumps(steps, indent=1))
    width = max((len(step["name"]) for step in steps), default=0)
    for step in steps:
        print(f'{step["name"]:{width}}  {step["seconds"]:4} s  {step["ended"]:12}  {step["note"]}')
    return 0 if steps and all(step["ended"] == "ok" for step in steps) else 1


if __name__ == "__main__":
    sys.exit(main())
