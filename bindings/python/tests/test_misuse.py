"""Whatever is done wrong ends in a Python exception, or cleanly."""
import os
import threading
import time
import unittest

import shoal
from support import LONG, SETTINGS, WithEngine, WithFolder, run_python


class Arguments(WithEngine):
    def test_wrong_types_are_type_errors(self):
        speak = self.engine.speak
        for refused in (lambda: speak(7), lambda: speak(None), lambda: speak(b"Hello."),
                        lambda: speak("Hello.", voice=7),
                        lambda: speak("Hello.", voices="0=clara"), lambda: speak("Hello.", voices={"0": "clara"}),
                        lambda: speak("Hello.", voices={0: 7}), lambda: speak("Hello.", seed="7"),
                        lambda: speak("Hello.", seed=7.5), lambda: speak("Hello.", seed=True),
                        lambda: speak("Hello.", temperature="hot"), lambda: speak("Hello.", speed=[1]),
                        lambda: speak("Hello.", strict=1), lambda: speak("Hello.", strict="yes"),
                        lambda: speak("Hello.", timeout="soon"), lambda: speak("Hello.", references="me.wav"),
                        lambda: speak("Hello.", references=["me.wav"]), lambda: speak("Hello.", references=7),
                        lambda: speak("Hello.", references=[(7, "words")]), lambda: speak("Hello.", pitch=2),
                        lambda: speak("Hello.", references=[(b"sound", 7)]), lambda: self.engine.encode(7),
                        lambda: self.engine.decode(7), lambda: self.engine.phonemize(7),
                        lambda: shoal.Engine(7.5j), lambda: shoal.Engine(threads=[]), lambda: shoal.inspect(precision=7),
                        lambda: shoal.Request(7), lambda: shoal.decode_sound(7)):
            with self.assertRaises(TypeError):
                refused()

    def test_wrong_values_are_refused_by_name(self):
        speak = self.engine.speak
        for refused, words in ((lambda: speak("Hello.", temperature=7), "temperature"),
                               (lambda: speak("Hello.", temperature=float("nan")), "temperature"),
                               (lambda: speak("Hello.", voices={-1: "clara"}), "voices: expected NUMBER=VOICE"),
                               (lambda: speak("Hello.", seed=-1), "seed"),
                               (lambda: speak("Hello.", seed=2**70), "seed"),
                               (lambda: speak("Hello.", speed=5), "speed: expected 0.25 to 4"),
                               (lambda: speak(""), "text"), (lambda: speak("a\0b"), "text"),
                               (lambda: speak("\ud800"), "text"), (lambda: speak("x" * 300000), "text"),
                               (lambda: shoal.Engine(threads=-1), "threads"),
                               (lambda: shoal.Engine(threads="many"), "threads"),
                               (lambda: shoal.Engine(treads=2), "treads"),
                               (lambda: shoal.Engine(device="toaster"), "device"),
                               (lambda: self.engine.decode(b"\0" * 4), "codes")):
            with self.assertRaisesRegex(ValueError, words) as raised:
                refused()
            self.assertIsInstance(raised.exception, shoal.Error)
        self.assertGreater(speak("Hello.", seed=2**64 - 1).duration, 0)

    def test_numbers_of_numpy_are_numbers(self):
        try:
            import numpy
        except ImportError:
            self.skipTest("numpy is not installed")
        wanted = self.engine.speak("Hello.", seed=7, temperature=0.5).data
        self.assertEqual(self.engine.speak("Hello.", seed=numpy.int64(7), temperature=numpy.float32(0.5)).data, wanted)

    def test_the_file_that_is_missing_is_named(self):
        with self.assertRaisesRegex(shoal.NotFound, "no.wav"):
            self.engine.speak("Hello.", references=[shoal.Reference("no.wav", "words")])
        with self.assertRaises(shoal.NotFound):
            shoal.Engine("no/such/model")


class Closed(WithFolder):
    def test_a_closed_engine_says_so(self):
        engine = shoal.Engine(**SETTINGS)
        stream = engine.stream(LONG)
        next(stream)
        engine.close()
        engine.close()
        with self.assertRaisesRegex(shoal.Unavailable, "stopping"):
            list(stream)
        for refused in (lambda: engine.speak("Hello."), lambda: engine.stream("Hello."), lambda: engine.voices,
                        lambda: engine.stats(), lambda: engine.encode(b"x"), lambda: engine.speak_batch(["x"]),
                        lambda: engine.reload(), lambda: engine.sample_rate):
            with self.assertRaisesRegex(shoal.Unavailable, "closed"):
                refused()
        self.assertEqual(engine.health(), {"state": "stopped"})
        self.assertIn("stopped", repr(engine))

    def test_closing_waits_for_what_runs_if_it_is_asked_to(self):
        engine = shoal.Engine(**SETTINGS)
        stream = engine.stream("Hello there.", seed=7)
        engine.close(grace=60)
        self.assertGreater(stream.read_all().duration, 0.3)

    def test_closing_ends_other_threads_waits(self):
        engine = shoal.Engine(**SETTINGS)
        errors = []

        def wait():
            try:
                engine.speak(LONG)
            except shoal.Unavailable as error:
                errors.append(error)

        threads = [threading.Thread(target=wait) for _ in range(4)]
        for thread in threads:
            thread.start()
        while engine.stats()["queue"]["running"] == 0:
            time.sleep(0.005)
        engine.close()
        for thread in threads:
            thread.join()
        self.assertEqual(len(errors), 4)

    def test_an_engine_can_be_reloaded(self):
        with shoal.Engine(**SETTINGS) as engine:
            before = engine.speak("Hello there.", seed=7)
            engine.reload()
            self.assertEqual(engine.speak("Hello there.", seed=7).data, before.data)
            with self.assertRaises(shoal.NotFound):
                engine.reload("no/such/model")
            self.assertEqual(engine.speak("Hello there.", seed=7).data, before.data)

    def test_garbage_collection_does_not_wait(self):
        def speaking():
            engine = shoal.Engine(**SETTINGS)
            stream = engine.stream(LONG * 20)
            next(stream)
            return engine, stream

        dropping, closing = [], []
        for _ in range(3):  # the shortest of each, for machines that do other things too
            running = speaking()
            began = time.perf_counter()
            del running
            dropping.append(time.perf_counter() - began)
            engine, stream = speaking()
            began = time.perf_counter()
            engine.close()
            closing.append(time.perf_counter() - began)
        self.assertLess(min(dropping), min(closing) / 4)


class Processes(WithFolder):
    def check(self, code, expected="fine\n", **options):
        outcome = run_python(f"import os, sys, threading, time, asyncio, shoal\nSETTINGS = {SETTINGS}\n"
                             f"LONG = {LONG!r}\n{code}", **options)
        self.assertEqual((outcome.returncode, outcome.stdout, outcome.stderr), (0, expected, ""))

    def test_the_child_of_a_fork_is_refused_with_a_sentence(self):
        self.check("""
engine = shoal.Engine(**SETTINGS)
stream = engine.stream(LONG)
next(stream)
child = os.fork()
if child == 0:
    for refused in (lambda: engine.speak("Hello."), lambda: next(stream), lambda: engine.stats(),
                    lambda: shoal.Engine(**SETTINGS), lambda: engine.voices.list(), lambda: engine.close()):
        try:
            refused()
            print("not refused")
        except shoal.Unavailable as error:
            assert "fork" in str(error), error
    del engine, stream
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
next(stream)
print("fine")
""")

    def test_a_process_without_engine_may_fork(self):
        self.check("""
child = os.fork()
with shoal.Engine(**SETTINGS) as engine:
    engine.speak("Hello.")
if child:
    assert os.waitpid(child, 0)[1] == 0
    print("fine")
""")

    def test_the_interpreter_ends_while_streams_run(self):
        self.check("""
engine = shoal.Engine(**SETTINGS)
streams = [engine.stream(LONG) for _ in range(4)]
next(streams[0])
print("fine")
""")

    def test_the_interpreter_ends_while_daemon_threads_read(self):
        self.check("""
engine = shoal.Engine(**SETTINGS)
def read():
    try:
        for chunk in engine.stream(LONG * 40): pass
    except shoal.Unavailable: pass
for _ in range(8): threading.Thread(target=read, daemon=True).start()
time.sleep(0.3)
print("fine")
""")

    def test_the_interpreter_ends_while_an_engine_is_being_dropped(self):
        self.check("""
engine = shoal.Engine(**SETTINGS)
stream = engine.stream(LONG)
next(stream)
del engine, stream
print("fine")
""")

    def test_the_interpreter_ends_while_an_engine_starts(self):
        self.check("""
threading.Thread(target=lambda: shoal.Engine(**SETTINGS), daemon=True).start()
time.sleep(0.05)
print("fine")
""")

    def test_the_event_loop_ends_while_streams_run(self):
        self.check("""
engine = shoal.Engine(**SETTINGS)
async def listen():
    async for chunk in engine.stream_async(LONG): pass
async def main():
    global tasks
    tasks = [asyncio.create_task(listen()) for _ in range(4)]
    await asyncio.sleep(0.2)
asyncio.run(main())
print("fine")
""")

    def test_the_interpreter_ends_inside_an_exception(self):
        outcome = run_python(f"import shoal\nengine = shoal.Engine(**{SETTINGS})\n"
                             f"for chunk in engine.stream({LONG!r}): raise KeyError(7)")
        self.assertEqual(outcome.returncode, 1)
        self.assertTrue(outcome.stderr.endswith("KeyError: 7\n"), outcome.stderr)

    def test_messages_go_to_logging(self):
        code = """
import logging
seen = []
class Handler(logging.Handler):
    def emit(self, record):
        seen.append((record.name, record.levelname, record.getMessage()))
        raise ValueError("a handler's own fault")
logging.getLogger("shoal").addHandler(Handler())
import ctypes
from shoal import _library
library = _library.library()
os.makedirs("references/bad")
open("references/bad/clip.wav", "w").write("no sound")
open("references/bad/clip.lab", "w").write("words")
with shoal.Engine(warm_voices="all", **SETTINGS) as engine:
    for _ in range(200):
        if seen: break
        time.sleep(0.02)
assert seen and seen[0][0] == "shoal" and "bad" in seen[0][2], seen
print("fine")
"""
        self.check(code)


if __name__ == "__main__":
    unittest.main()
