import gc
import signal
import subprocess
import sys
import threading
import time
import unittest

import shoal
from support import LONG, SETTINGS, WithEngine


class Streams(WithEngine):
    def test_pieces_are_the_whole(self):
        text = "Hello there. This is a longer text, in two sentences."
        whole = self.engine.speak(text, seed=7)
        pieces = list(self.engine.stream(text, seed=7))
        self.assertGreater(len(pieces), 1)
        self.assertEqual(b"".join(piece.data for piece in pieces), whole.data)
        self.assertEqual(b"".join(piece.pcm16 for piece in pieces), whole.pcm16)

    def test_what_was_not_read_can_be_read_at_once(self):
        with self.engine.stream("Hello there. And more.", seed=7) as stream:
            first = next(stream)
            rest = stream.read_all()
        self.assertEqual(first.data + rest.data, self.engine.speak("Hello there. And more.", seed=7).data)

    def test_closing_early_cancels(self):
        with self.engine.stream(LONG) as stream:
            next(stream)
            self.assertLess(stream.progress, 1)
        self.assert_idle()
        self.assertEqual(list(stream), [])
        self.assertGreater(stream.summary.samples, 0)
        stream.close()

    def test_dropping_cancels(self):
        for chunk in self.engine.stream(LONG):
            break
        gc.collect()
        self.assert_idle()

    def test_cancel_is_told_to_the_reader(self):
        stream = self.engine.stream(LONG)
        next(stream)
        threading.Timer(0.05, stream.cancel).start()
        with self.assertRaises(shoal.Cancelled) as raised:
            list(stream)
        self.assertEqual(raised.exception.code, "cancelled")

    def test_closing_from_another_thread_ends_the_reader(self):
        stream = self.engine.stream(LONG)
        next(stream)
        threading.Timer(0.05, stream.close).start()
        list(stream)  # ends, and raises nothing
        self.assert_idle()

    def test_a_reader_that_wakes_while_close_still_works_ends_too(self):
        stream = self.engine.stream(LONG)
        next(stream)
        known, rest = stream._all_known, []

        def read_meanwhile():
            reader = threading.Thread(target=lambda: rest.extend(stream))
            reader.start()
            reader.join(60)
            self.assertFalse(reader.is_alive())
            rest.append("ended")
            return known()

        stream._all_known = read_meanwhile
        stream.close()
        self.assertEqual(rest[-1:], ["ended"])
        self.assertEqual([piece for piece in rest[:-1] if isinstance(piece, str)], [])

    def test_a_deadline_is_a_timeout(self):
        with self.assertRaises(TimeoutError) as raised:
            self.engine.speak(LONG, timeout=0.05)
        self.assertIsInstance(raised.exception, shoal.DeadlineExceeded)

    def test_other_threads_run_meanwhile(self):
        count = 0
        with self.engine.stream(LONG, chunk_length=1000) as stream:
            done = threading.Event()

            def read():
                for _ in range(20):
                    next(stream)
                done.set()

            reader = threading.Thread(target=read)
            reader.start()
            while not done.is_set():
                count += 1
            reader.join()
        self.assertGreater(count, 1000)

    def test_many_threads_share_an_engine(self):
        expected = self.engine.speak("Hello there.", seed=7).data
        results = []
        threads = [threading.Thread(target=lambda: results.append(self.engine.speak("Hello there.", seed=7).data))
                   for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(results, [expected] * 16)

    def test_several_engines_live_side_by_side(self):
        with shoal.Engine(**SETTINGS) as other:
            self.assertEqual(other.speak("Hello there.", seed=7).data, self.engine.speak("Hello there.", seed=7).data)


WAITING = {
    "speak": "engine.speak(LONG * 40)",
    "stream": "list(engine.stream(LONG * 40))",
    "speak_batch": "engine.speak_batch([LONG * 40])",
    "asyncio": "import asyncio; asyncio.run(engine.speak_async(LONG * 40))",
    "Engine": "[shoal.Engine(**SETTINGS) for _ in range(1000)]",
    "encode": "speech = engine.speak('Hello there. ' * 40); wav = speech.to_bytes()\nwhile True: engine.encode(wav + b'x')",
}


class Interrupts(unittest.TestCase):
    def interrupt(self, waiting):
        """Seconds from Ctrl-C to KeyboardInterrupt in a program that waits for the engine."""
        code = f"""
import time, shoal, support
from support import LONG, SETTINGS
engine = shoal.Engine(max_queue=4, **SETTINGS)
print("ready", flush=True)
try:
    {waiting.replace(chr(10), chr(10) + "    ")}
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True,
                                   cwd=__file__.rsplit("/", 1)[0])
        self.addCleanup(process.stdout.close)
        self.assertEqual(process.stdout.readline(), "ready\n")
        time.sleep(0.4)
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.stdout.readline(), "interrupted\n")
        elapsed = time.monotonic() - began
        self.assertEqual(process.wait(60), 0)
        return elapsed

    def test_ctrl_c_ends_what_waits(self):
        for name, waiting in WAITING.items():
            with self.subTest(name):
                self.assertLess(self.interrupt(waiting), 5)  # far less than what it waits for


if __name__ == "__main__":
    unittest.main()
