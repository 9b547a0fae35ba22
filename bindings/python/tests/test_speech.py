import subprocess
import sys
import unittest
from array import array
from pathlib import Path

import shoal
from support import (PROGRAM, SETTINGS, WithEngine, WithFolder, needs_program, numpy_or_none, run_python, say,
                     tiny_kokoro)


class Speech(WithEngine):
    def test_has_samples_and_figures(self):
        speech = self.engine.speak("Hello there.", voice="clara", seed=7)
        self.assertEqual(speech.sample_rate, 16000)
        self.assertEqual(self.engine.sample_rate, 16000)
        self.assertEqual(len(speech.samples), len(speech))
        self.assertEqual(len(speech), speech.summary.samples)
        self.assertGreater(speech.duration, 0.3)
        self.assertEqual(speech.seed, 7)
        self.assertEqual(speech.words, [])
        self.assertLessEqual(speech.summary.first_audio_s, speech.summary.total_s)
        self.assertEqual(len(speech.codes), speech.summary.frames)
        self.assertIn("seed 7", repr(speech))

    @unittest.skipUnless(numpy_or_none(), "numpy is not installed")
    def test_samples_are_float32_of_numpy(self):
        samples = self.engine.speak("Hello there.").samples
        self.assertEqual(str(samples.dtype), "float32")
        self.assertLessEqual(abs(samples).max(), 1)

    def test_a_drawn_seed_repeats_the_sound(self):
        first = self.engine.speak("Hello there.")
        self.assertEqual(self.engine.speak("Hello there.", seed=first.seed).data, first.data)
        self.assertNotEqual(self.engine.speak("Hello there.").seed, first.seed)

    def test_pcm16_rounds_to_the_nearest(self):
        sound = shoal.Sound(array("f", [0, 1, -1, 2, 0.5, float("nan")]).tobytes(), 16000)
        self.assertEqual(list(memoryview(sound.pcm16).cast("h")), [0, 32767, -32767, 32767, 16384, 0])

    @needs_program
    def test_the_bytes_are_those_of_the_program(self):
        for ending in ("wav", "flac", "ogg", "mp3"):
            text = "Hello there. This is a longer text, in two sentences."
            say(text, "--voice", "clara", "--seed", "7", "-o", f"said.{ending}")
            self.engine.speak(text, voice="clara", seed=7).save(f"spoken.{ending}")
            self.assertEqual(Path(f"spoken.{ending}").read_bytes(), Path(f"said.{ending}").read_bytes(), ending)

    def test_a_file_is_complete_or_not_there(self):
        speech = self.engine.speak("Hello.")
        for path, error in (("no/such/folder.wav", shoal.FileError), ("hello.docx", shoal.InvalidArgument)):
            with self.assertRaises(error):
                speech.save(path)
        with self.assertRaises(OSError):
            speech.save(str(self.folder), "wav")
        self.assertEqual(list(self.folder.iterdir()), [])
        speech.save("/dev/null", "wav")
        self.assertTrue(Path("/dev/null").is_char_device())

    def test_plays_in_a_notebook(self):
        self.assertRegex(self.engine.speak("Hello.")._repr_html_(), r'^<audio controls src="data:audio/wav;base64,UklGR')

    def test_a_file_can_be_read_back(self):
        speech = self.engine.speak("Hello there.")
        speech.save("hello.flac")
        sound = shoal.decode_sound("hello.flac")
        self.assertEqual((sound.sample_rate, sound.pcm16), (16000, speech.pcm16))

    def test_warnings_are_told_and_strict_refuses(self):
        self.assertIn("language", self.engine.speak("Hello.", language="en-us").warnings[0])
        with self.assertRaises(shoal.Unsupported):
            self.engine.speak("Hello.", language="en-us", strict=True)

    def test_codes_are_sound_again(self):
        speech = self.engine.speak("Hello there.", seed=3)
        speech.save("clip.wav")
        clip = self.engine.encode("clip.wav")
        self.assertEqual(len(clip.codes), clip.frames)
        self.assertEqual(self.engine.encode(Path("clip.wav").read_bytes()), clip)
        self.assertEqual(len(self.engine.decode(clip)), len(self.engine.decode(clip.codes)))
        follow = shoal.Reference(clip, "Hello there.")
        self.assertGreater(self.engine.speak("And so on.", references=[follow]).duration, 0.1)
        with self.assertRaises(shoal.CorruptFile):
            self.engine.encode(b"this is no sound file at all, but long enough to be looked at")

    def test_says_what_it_is_and_does(self):
        self.assertEqual(self.engine.health()["state"], "ready")
        self.assertGreaterEqual(self.engine.stats()["requests"]["submitted"], 0)
        self.assertEqual(self.engine.traits["family"], "s1")
        self.assertIsNone(self.engine.self_test()["error"])
        self.assertIn("ready", repr(self.engine))


class WithoutNumpy(WithFolder):
    def test_samples_are_a_memoryview_of_floats(self):
        code = f"""
import sys
sys.modules["numpy"] = None
import shoal
with shoal.Engine(**{SETTINGS}) as engine:
    speech = engine.speak("Hello there.", seed=7)
assert isinstance(speech.samples, memoryview) and speech.samples.format == "f", speech.samples
assert speech.codes.shape[0] == speech.summary.frames, speech.codes.shape
assert len(speech.samples) == len(speech.buffer) == speech.summary.samples
print("fine")
"""
        outcome = run_python(code)
        self.assertEqual((outcome.stdout, outcome.stderr), ("fine\n", ""))


class Kokoro(WithFolder):
    def test_knows_when_words_are_heard(self):
        model = tiny_kokoro(self.folder)
        with shoal.Engine(model, device="cpu", **SETTINGS) as engine:
            speech = engine.speak("", phonemes="həlˈO ðˈɛɹ.", voice="af_one(2)+bf_two", seed=7)
            self.assertEqual(speech.sample_rate, 24000)
            self.assertEqual([word.word for word in speech.words][:2], ["həlˈO", "ðˈɛɹ"])
            self.assertLess(speech.words[0].start, speech.words[1].end)
            with engine.stream("", phonemes="həlˈO ðˈɛɹ.", voice="af_one(2)+bf_two", seed=7) as stream:
                self.assertEqual(b"".join(chunk.data for chunk in stream), speech.data)
                self.assertEqual(stream.words, speech.words)
            self.assertEqual(stream.words, speech.words)  # closed
            self.assertEqual(list(engine.voices), ["af_one", "bf_two"])
            self.assertEqual(engine.voices["af_one"].language, "en-us")


class Unloaded(WithFolder):
    def test_models_can_be_asked_about(self):
        self.assertEqual(shoal.inspect()["family"], "s1")
        self.assertIsNone(shoal.inspect().get("problem"))
        self.assertIn("tensors", repr(shoal.inspect(tensors=True)))
        with self.assertRaises(shoal.NotFound):
            shoal.inspect("no/such/model")
        small, large = (shoal.memory_plan(max_batch_size=size, kv_memory_mb=64, device="cpu")["total_bytes"]
                        for size in (1, 64))
        self.assertLess(small, large)
        self.assertIn("kv_memory_mb", [setting["name"] for setting in shoal.settings()])

    def test_has_the_version_of_the_library(self):
        self.assertRegex(shoal.__version__, r"^\d+\.\d+\.\d+$")


@needs_program
class Program(WithFolder):
    def test_is_the_module(self):
        def run(*arguments):
            return subprocess.run([sys.executable, "-m", "shoal", *arguments], capture_output=True, text=True)

        self.assertEqual(run("say", "Hello.", "--seed", "7", "-q", "-o", "hello.wav").returncode, 0)
        self.assertTrue(Path("hello.wav").read_bytes().startswith(b"RIFF"))
        self.assertEqual(run("say").returncode, 2)
        self.assertEqual(run("--version").stdout,
                         subprocess.run([PROGRAM, "--version"], capture_output=True, text=True).stdout)


if __name__ == "__main__":
    unittest.main()
