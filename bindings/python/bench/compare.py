"""Python beside C++ on the same library: first sound of one user, throughput of many, and the time of the import.

    PYTHONPATH=build/release/python python3 bindings/python/bench/compare.py build/release/bindings/python/python_peer

The two take turns, so that what else the machine does meets both.
"""
import argparse
import asyncio
import resource
import statistics
import subprocess
import sys
import threading
import time

TEXT = "The quick brown fox jumps."
SETTINGS = {"threads": 2, "cache_dir": "none", "request_timeout_s": 0}


def first(requests):
    import shoal
    with shoal.Engine(**SETTINGS) as engine:
        for i in range(requests):
            start = time.perf_counter()
            stream = engine.stream(TEXT, voice="clara", seed=i)
            next(stream)
            first_s = time.perf_counter() - start
            list(stream)
            print(f"{first_s * 1e3:.4f} {(first_s - stream.summary.first_audio_s) * 1e3:.4f}")


def users(count, requests):
    import shoal
    samples = [0] * count
    with shoal.Engine(**SETTINGS) as engine:
        def speak(user):
            for i in range(requests):
                for chunk in engine.stream(TEXT, voice="clara", seed=user * requests + i):
                    samples[user] += len(chunk)

        start = time.perf_counter()
        threads = [threading.Thread(target=speak, args=(user,)) for user in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print(f"{sum(samples) / engine.sample_rate / (time.perf_counter() - start):.4f}")


def users_async(count, requests):
    import shoal
    with shoal.Engine(**SETTINGS) as engine:
        async def speak(user):
            samples = 0
            for i in range(requests):
                async for chunk in engine.stream_async(TEXT, voice="clara", seed=user * requests + i):
                    samples += len(chunk)
            return samples

        async def all_users():
            return sum(await asyncio.gather(*(speak(user) for user in range(count))))

        start = time.perf_counter()
        samples = asyncio.run(all_users())
        print(f"{samples / engine.sample_rate / (time.perf_counter() - start):.4f}")


def import_ms():
    code = "import time; t = time.perf_counter(); import shoal; print((time.perf_counter() - t) * 1e3)"
    return [float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
            for _ in range(11)]


def cpu_s():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def numbers(command, *arguments):
    output = subprocess.run([*command, *map(str, arguments)], capture_output=True, text=True, check=True).stdout
    return [float(line) for line in output.split()]


ME = [sys.executable, __file__, "--run"]


def compare_first(peer, rounds, requests):
    cpp, python = [], []
    for _ in range(rounds):
        cpp += numbers([peer], "first", requests)
        python += numbers(ME, "first", requests)
    for at, what in enumerate(("first sound", "of it after the engine had it")):
        print(f"{what}, {rounds * requests} requests each: C++ median {statistics.median(cpp[at::2]):.3f} ms, "
              f"Python {statistics.median(python[at::2]):.3f} ms", flush=True)


def compare_users(peer, rounds, requests, count):
    programs = {"C++": ([peer], "users"), "Python threads": (ME, "users"), "asyncio": (ME, "users_async")}
    rates, cpu = {name: [] for name in programs}, {name: [] for name in programs}
    for _ in range(rounds):
        for name, (command, what) in programs.items():
            before = cpu_s()
            rates[name] += numbers(command, what, count, requests)
            cpu[name].append(cpu_s() - before)
    print(f"{count} users with {requests} requests each, seconds of sound per second, and CPU seconds with the start:")
    for name in programs:
        ratio = statistics.median(value / base for value, base in zip(rates[name], rates["C++"]))
        print(f"  {name}: {', '.join(f'{value:.2f}' for value in rates[name])}; of C++ in the same round {ratio:.3f} "
              f"(median); CPU {statistics.median(cpu[name]):.2f} s (median)")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--run"]:
        {"first": first, "users": users, "users_async": users_async}[sys.argv[2]](*map(int, sys.argv[3:]))
        sys.exit()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peer")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=10)
    parser.add_argument("--users", type=int, default=32)
    parser.add_argument("--requests-of-user", type=int, default=2)
    options = parser.parse_args()
    print(f"import shoal: median {statistics.median(import_ms()):.1f} ms of 11", flush=True)
    compare_first(options.peer, options.rounds, options.requests)
    compare_users(options.peer, options.rounds, options.requests_of_user, options.users)
