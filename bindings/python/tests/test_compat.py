import asyncio
import unittest

import shoal
from shoal.compat.s1_mini import (EngineConfig, KokoroPipeline, ProductionTTSEngine, ServeReferenceAudio,
                                  ServeTTSRequest, TTSInferenceEngine, from_pretrained)
from support import WithFolder, tiny_kokoro


class Older(WithFolder):
    @classmethod
    def setUpClass(cls):
        config = EngineConfig(checkpoint_path="", device="cpu", enable_batching=True, max_batch_size=4,
                              batch_timeout_ms=1, batch_grouping=True)
        cls.engine = ProductionTTSEngine(config).start()

    @classmethod
    def tearDownClass(cls):
        cls.engine.stop()

    def test_speaks_batches(self):
        clip = self.engine.shoal.speak("These are the words.", seed=1).to_bytes()
        response = self.engine.generate_batch(
            ["One.", "Two.", "Three."], reference_audios=[None, clip, clip],
            reference_texts=[None, "These are the words.", None], max_new_tokens=2048, temperature=0.7,
            return_bytes=True, seed=7)
        self.assertFalse(response.success)
        self.assertEqual([item.success for item in response.results], [True, True, False])
        self.assertTrue(response["results"][0]["audio_bytes"].startswith(b"RIFF"))
        self.assertIn("words spoken in the clip", response.results[2].error)
        self.assertLessEqual(response.results[0].generation_time, response.total_time)

        async def again():
            return await self.engine.generate_batch_async(["One.", "Two."], temperature=0.7, seed=7)

        later = asyncio.run(again())
        self.assertTrue(later.success)
        self.assertEqual(later.results[0].audio_bytes, response.results[0].audio_bytes)
        with self.assertRaisesRegex(ValueError, "reference_texts"):
            self.engine.generate_batch(["One."], reference_audios=[None], reference_texts=[None, None])

    def test_speaks_one_text(self):
        response = self.engine.generate("Hello there.", temperature=0.7, seed=7, return_bytes=True)
        rate, samples = response.audio
        self.assertEqual((response.success, rate), (True, 16000))
        self.assertEqual(response.metrics.audio_duration_seconds, len(samples) / rate)
        failed = self.engine.generate("Hello.", reference_id="nobody")
        self.assertFalse(failed.success)
        self.assertIn("nobody", failed.error)
        codes = [result.code for result in self.engine.generate_stream("Hello there.", seed=7)]
        self.assertEqual((codes[0], codes[-1], set(codes[1:-1])), ("header", "final", {"segment"}))

    def test_infers_requests(self):
        results = list(self.engine.inference(ServeTTSRequest("Hello there.", seed=7)))
        self.assertEqual([result.code for result in results], ["final"])
        self.assertEqual(results[0].audio[0], 16000)
        clip = self.engine.shoal.speak("These are the words.", seed=1).to_bytes()
        reference = ServeReferenceAudio(clip, "These are the words.")
        last = list(self.engine.inference(ServeTTSRequest("Hello.", references=[reference], streaming=True)))[-1]
        self.assertEqual(last.code, "final")
        self.assertEqual([r.code for r in self.engine.inference(ServeTTSRequest("", seed=7))], ["error"])

    def test_tells_its_health(self):
        health = self.engine.health_check()
        self.assertEqual((health["healthy"], health["device"]), (True, "cpu"))
        self.assertIsNone(health["vram"]["used_gb"])  # a CPU
        stopped = ProductionTTSEngine(EngineConfig(checkpoint_path=""))
        self.assertFalse(stopped.health_check()["healthy"])
        with self.assertRaises(RuntimeError):
            stopped.generate("Hello.")

    def test_comes_from_a_folder(self):
        with from_pretrained("", compile=False, precision="float32") as engine:
            self.assertIsInstance(engine, TTSInferenceEngine)
            self.assertEqual(engine.shoal.health()["precision"], "float32")

    def test_what_has_no_meaning_is_refused_by_name(self):
        for name, value in (("compile_backend", "inductor"), ("compile_mode", "max-autotune"), ("device", "mps"),
                            ("vram_reserved_gb", 1.0), ("vram_clear_on_oom_only", False)):
            with self.assertRaisesRegex(shoal.Unsupported, name):
                EngineConfig(**{name: value})
        with self.assertRaisesRegex(TypeError, "max_batchsize"):
            EngineConfig(max_batchsize=3)
        self.assertEqual(EngineConfig(enable_batching=False, max_batch_size=8).settings()["max_batch_size"], 1)


class Kokoro(WithFolder):
    def test_speaks_phonemes(self):
        with KokoroPipeline(tiny_kokoro(self.folder), device="cpu") as pipeline:
            self.assertGreater(len(pipeline.from_phonemes("həlˈO", "af_one", 1.0)), 1000)
            self.assertEqual(len(pipeline.batch_from_phonemes_gpu(["həlˈO", "ðˈɛɹ"], "bf_two", 1.5)), 2)

            async def many():
                return await asyncio.gather(*(pipeline.submit_for_batching("həlˈO", voice, 1.0)
                                              for voice in ("af_one", "bf_two")))

            self.assertEqual(len(asyncio.run(many())), 2)
            with self.assertRaises(shoal.NotFound):
                pipeline.batch_from_phonemes_gpu(["həlˈO"], "nobody")
            stats = pipeline.get_stats()
            self.assertGreaterEqual(stats["total_requests"], 5)
            self.assertEqual((stats["device"], stats["worker_running"], stats["mps_available"]), ("cpu", True, False))


if __name__ == "__main__":
    unittest.main()
