"""Nothing grows: neither memory nor threads nor open files. GROWTH_REQUESTS says how many requests (default 100)."""
import asyncio
import ctypes
import gc
import os
import time
import unittest

import shoal
from support import LONG, SETTINGS, WithFolder, resident_kib

REQUESTS = int(os.environ.get("GROWTH_REQUESTS", 100))
SLACK_KIB = 8 * 1024  # the allocator's
LIBC = ctypes.CDLL(None)


def things():
    gc.collect()
    return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))


class Mallinfo2(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in (
        "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")]


LIBC.mallinfo2.restype = Mallinfo2


def memory_kib():
    """Allocated memory (0 under a sanitizer), and what is resident without what was freed and is kept for later."""
    LIBC.malloc_trim(0)
    info = LIBC.mallinfo2()
    return (info.uordblks + info.hblkhd) // 1024, resident_kib()


def request(engine, i):
    """One short request, of every kind in turn."""
    kind = i % 5
    brief = {"seed": i, "max_new_tokens": 3}
    if kind == 0:
        engine.speak("A.", **brief)
    elif kind == 1:
        next(engine.stream(LONG, **brief))
    elif kind == 2:
        asyncio.run(engine.speak_async("A.", **brief))
    elif kind == 3:
        engine.speak_batch(["A.", ""], **brief)
    else:
        try:
            engine.speak("A.", voice="nobody")
        except shoal.NotFound:
            pass


class Growth(WithFolder):
    def assert_no_more(self, before):
        """A thread that has ended, even a joined one, stands in /proc a moment longer: the kernel removes it later."""
        deadline = time.monotonic() + 10
        while (now := things()) and any(map(int.__gt__, now, before)) and time.monotonic() < deadline:
            time.sleep(0.01)
        for kind, count, limit in zip(("open files", "threads"), now, before):
            self.assertLessEqual(count, limit, kind)

    def assert_little_more(self, before, resident_kib_more):
        now = memory_kib()
        self.assertLess(now[0] - before[0], 1024, "allocated")
        self.assertLess(now[1] - before[1], resident_kib_more, "resident")

    def test_requests_leave_nothing_behind(self):
        with shoal.Engine(**SETTINGS) as engine:
            for i in range(REQUESTS // 2):
                request(engine, i)
            before, memory = things(), memory_kib()
            for i in range(REQUESTS // 2):
                request(engine, i)
            self.assert_no_more(before)
            self.assert_little_more(memory, resident_kib_more=SLACK_KIB)

    def test_engines_leave_nothing_behind(self):
        def one(i):
            with shoal.Engine(kv_memory_mb=16, **SETTINGS) as engine:
                engine.speak("A.", seed=i)

        one(0)
        one(1)
        before, memory = things(), memory_kib()
        for i in range(max(3, REQUESTS // 100)):
            one(i)
        self.assert_no_more(before)
        self.assert_little_more(memory, resident_kib_more=4 * SLACK_KIB)


if __name__ == "__main__":
    unittest.main()
