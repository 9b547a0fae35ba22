#!/usr/bin/env python3
"""Fleets of different sizes under the same load, beside each other: seconds of sound a second, first sound, cores.

  tools/fleet_bench.py --shoal build/cuda/src/cli/shoal --fleet cuda:0=1 --fleet cuda:0=2 --fleet cuda:0,cuda:1=1 \\
      --users 64,256 --requests 1024 --output out/fleets -- --model random:s1-mini --max-batch-size 256

A fleet is DEVICES=WORKERS_OF_EACH. Each is started (`shoal fleet`, behind HAProxy), asked by `shoal bench serve` for
short texts as streams, and ended. --kill: after the levels, the last one again with four times the requests, while a
worker is killed every 5 s. --users '': they are only started, to see how long that takes.
Everything after -- goes to `shoal fleet`. Leaves results.json and the folders of the runs in --output.
"""
import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


def arguments() -> argparse.Namespace:
    own, fleet_flags = sys.argv[1:], []
    if "--" in own:
        split = own.index("--")
        own, fleet_flags = own[:split], own[split + 1:]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shoal", required=True)
    parser.add_argument("--fleet", action="append", required=True, metavar="DEVICES=N")
    parser.add_argument("--users", default="64,256", help="at a time, of the whole fleet")
    parser.add_argument("--per-device", action="store_true", help="users and requests are those of each device")
    parser.add_argument("--requests", type=int, default=512, help="of each level")
    parser.add_argument("--frames", default="64,80,96,112,128", help="the most frames of a request, in turn")
    parser.add_argument("--rounds", type=int, default=1, help="each fleet so often, in turn")
    parser.add_argument("--kill", action="store_true")
    parser.add_argument("--port", type=int, default=18000)
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args(own)
    options.fleet_flags = fleet_flags
    options.users = [int(users) for users in options.users.split(",") if users]
    return options


def get_json(url: str) -> dict | None:
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return json.load(answer)
    except OSError:
        return None


def stat_of(pid: str) -> tuple[str, str, float] | None:
    """Name, parent and CPU seconds of a process; None if it has ended."""
    try:
        name, _, rest = Path(f"/proc/{pid}/stat").read_text().partition("(")[2].rpartition(")")
    except OSError:
        return None
    fields = rest.split()
    return name, fields[1], (int(fields[11]) + int(fields[12])) / TICKS


class Fleet:
    """`shoal fleet` on loopback ports, ready when made."""

    def __init__(self, options: argparse.Namespace, spec: str, log: Path):
        devices, _, per_device = spec.partition("=")
        self.devices = len(devices.split(","))
        self.count = self.devices * int(per_device)
        self.url = f"http://127.0.0.1:{options.port}"
        began = time.monotonic()
        self.process = subprocess.Popen(
            [options.shoal, "fleet", "--devices", devices, "--per-device", per_device, "--listen",
             f"127.0.0.1:{options.port}", "--base-port", str(options.port + 1), "--stagger-start", "0",
             *options.fleet_flags], stdout=log.open("w"), stderr=subprocess.STDOUT)
        while len(self.workers("ready")) < self.count:
            if self.process.poll() is not None:
                sys.exit(f"fleet_bench: the fleet {spec} ended:\n{log.read_text()[-2000:]}")
            if time.monotonic() - began > 300:
                self.end()
                sys.exit(f"fleet_bench: the fleet {spec} is not ready after 300 s:\n{log.read_text()[-2000:]}")
            time.sleep(0.05)
        self.ready_s = time.monotonic() - began
        time.sleep(2)  # until HAProxy has asked all of them, too

    def workers(self, state: str) -> list[dict]:
        answer = get_json(self.url + "/v1/workers")
        return [worker for worker in answer["workers"] if worker["state"] == state] if answer else []

    def cpu_s(self) -> dict[str, float]:
        """CPU seconds of the fleet's processes so far: workers, balancer, supervisor."""
        table = {pid: stat for pid in filter(str.isdigit, os.listdir("/proc")) if (stat := stat_of(pid))}
        sums = {"workers": 0.0, "balancer": 0.0, "supervisor": table[str(self.process.pid)][2]}
        for name, parent, seconds in table.values():
            if parent == str(self.process.pid):
                sums["balancer" if name == "haproxy" else "workers"] += seconds
            elif parent in table and table[parent][1] == str(self.process.pid) and name == "haproxy":
                sums["balancer"] += seconds
        return sums

    def end(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def load(options: argparse.Namespace, fleet: Fleet, users: int, folder: Path, times: int = 1) -> dict:
    """One level of `shoal bench serve`: its summary, and cores used meanwhile."""
    frames = [word for count in options.frames.split(",") for word in ("--field", f"max_new_tokens={count}")]
    scale = fleet.devices if options.per_device else 1
    users, requests = users * scale, times * max(options.requests * scale, 2 * users * scale)
    before, began = fleet.cpu_s(), time.monotonic()
    run = subprocess.run(
        [options.shoal, "bench", "serve", fleet.url + "/v1/tts", "--concurrency", str(users), "--requests",
         str(requests), "--warm-up", str(users), "--texts", "short", "--field", "streaming=true",
         *frames, "--output", str(folder)], capture_output=True, text=True)
    if not (folder / "summary.json").exists():
        fleet.end()
        sys.exit(f"fleet_bench: shoal bench serve failed:\n{run.stdout[-1000:]}{run.stderr[-1000:]}")
    seconds = time.monotonic() - began
    level = json.loads((folder / "summary.json").read_text())["levels"][0]
    cores = {name: round(max(0.0, after - before[name]) / seconds, 2) for name, after in fleet.cpu_s().items()}
    return {"users": users, "cores": cores | {"load": level["client"]["cpu_share"]}, "level": level}


def kill_workers(fleet: Fleet, until: threading.Event, killed: list[int]) -> None:
    while not until.wait(5):
        ready = fleet.workers("ready")
        if len(ready) == fleet.count:
            victim = ready[len(killed) % fleet.count]["pid"]
            os.kill(victim, signal.SIGKILL)
            killed.append(victim)


def load_with_kills(options: argparse.Namespace, fleet: Fleet, users: int, folder: Path) -> dict:
    until, killed = threading.Event(), []
    thread = threading.Thread(target=kill_workers, args=(fleet, until, killed))
    thread.start()
    result = load(options, fleet, users, folder, times=4)
    until.set()
    thread.join()
    return {"workers_killed": len(killed)} | result


def line(spec: str, result: dict) -> str:
    level, cores = result["level"], result["cores"]
    failures = {kind: entry["count"] for kind, entry in level["failures"].items()}
    sound = level["first_audible_ms"]
    return (f"| {spec} | {result['users']} | {level['sound_s_per_s']:.1f} | {sound['p50']:.1f}, {sound['p95']:.1f} | "
            f"{level['underruns']['buffer_100ms']['requests']} | {cores['workers']}, {cores['balancer']}, {cores['load']:.2f} | "
            f"{level['requests']['completed']} | {failures or 0} |")


def main() -> None:
    options = arguments()
    options.output.mkdir(parents=True)
    results = []
    print("| fleet | users | seconds of sound a second | first audible sound p50, p95 (ms) | underruns | "
          "cores: workers, balancer, load | answers | failures |\n|---|---|---|---|---|---|---|---|", flush=True)
    for turn in range(options.rounds):
        for spec in options.fleet:
            name = f"{turn}-{spec.replace(':', '').replace(',', '-').replace('=', 'x')}"
            fleet = Fleet(options, spec, options.output / f"{name}.log")
            print(f"| {spec} | ready after {fleet.ready_s:.1f} s | | | | | | |", flush=True)
            entry = {"fleet": spec, "turn": turn, "ready_s": round(fleet.ready_s, 2), "levels": []}
            for users in options.users:
                entry["levels"].append(load(options, fleet, users, options.output / f"{name}-{users}"))
                print(line(spec, entry["levels"][-1]), flush=True)
            if options.kill and options.users and fleet.count > 1:
                entry["killed"] = load_with_kills(options, fleet, options.users[-1], options.output / f"{name}-killed")
                print(line(f"{spec}, {entry['killed']['workers_killed']} killed", entry["killed"]), flush=True)
            fleet.end()
            results.append(entry)
            (options.output / "results.json").write_text(json.dumps(
                {"fleet_flags": options.fleet_flags, "frames": options.frames, "results": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
