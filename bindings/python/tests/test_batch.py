import unittest

import shoal
from support import LONG, WithEngine


class Batch(WithEngine):
    def test_keeps_the_order_and_each_error_to_itself(self):
        items = ["One.", shoal.Request("Two, and a longer text than the others have.", voice="hugo"),
                 shoal.Request("Three.", voice="nobody"), shoal.Request("Four.", voice="a\0b"), "", "Six."]
        results = self.engine.speak_batch(items, seed=7, voice="clara")
        self.assertEqual([result.index for result in results], list(range(6)))
        self.assertEqual([result.error and result.error.code for result in results],
                         [None, None, "not_found", "invalid_argument", "invalid_argument", None])
        self.assertIn("NUL", str(results[3].error))
        with self.assertRaises(shoal.NotFound):
            results[2].get()
        self.assertGreater(results[1].get().duration, results[0].get().duration)
        self.assertEqual(results[0].speech.data,
                         self.engine.speak("One.", voice="clara", seed=results[0].speech.seed).data)

    def test_seeds_follow_from_the_batch_and_the_place(self):
        alone = self.engine.speak_batch(["One.", "Two."], seed=7)
        beside_errors = self.engine.speak_batch(["One.", "Two.", shoal.Request("x", voice="a\0b")], seed=7)
        moved = self.engine.speak_batch([shoal.Request("x", voice="a\0b"), "Two."], seed=7)
        for results in (beside_errors, moved):
            self.assertEqual(results[1].speech.data, alone[1].speech.data)
        own = self.engine.speak_batch([shoal.Request("One.", seed=3)], seed=7)[0].speech
        self.assertEqual(own.seed, 3)

    def test_tells_of_each_item_as_it_comes(self):
        heard = []
        results = self.engine.speak_batch([LONG[:600], "Two."], on_item=lambda result: heard.append(result.index))
        self.assertEqual(heard, [1, 0])
        self.assertTrue(all(result.error is None for result in results))

    def test_an_exception_of_the_callback_cancels_the_rest(self):
        def fail(result):
            raise KeyError(result.index)

        with self.assertRaises(KeyError):
            self.engine.speak_batch(["One.", LONG, LONG], on_item=fail)
        self.assert_idle()

    def test_limits_hold(self):
        results = self.engine.speak_batch([LONG, "Two."], max_item_s=2, max_in_flight=1)
        self.assertIsInstance(results[0].error, shoal.TooLarge)
        self.assertIsNone(results[1].error)

    def test_may_be_empty_and_refuses_what_is_no_list(self):
        self.assertEqual(self.engine.speak_batch([]), [])
        for wrong in ("One.", b"One.", None, 7, [7], [None]):
            with self.assertRaises(TypeError):
                self.engine.speak_batch(wrong)


class Voices(WithEngine):
    def test_are_added_listed_renamed_removed(self):
        voices = self.engine.voices
        self.engine.speak("These are the words.", seed=1).save("me.flac")
        voices.add("me", "me.flac", text="These are the words.")
        self.assertEqual(voices["me"].transcripts, ["These are the words."])
        self.assertIn("me", voices)
        self.assertEqual(len(voices), len(list(voices)))
        self.assertTrue(voices.get("clara").fixed)
        with self.assertRaises(shoal.AlreadyExists):
            voices.add("me", (self.folder / "me.flac").read_bytes(), text="These are the words.")
        self.assertGreater(self.engine.speak("Hello.", voice="me").duration, 0.1)
        voices.rename("me", "you")
        self.assertNotIn("me", voices)
        voices.remove("you")
        for refused, error in ((lambda: voices.get("you"), shoal.NotFound),
                               (lambda: voices.get("../x"), shoal.InvalidArgument),
                               (lambda: voices.remove("clara"), shoal.Unsupported),
                               (lambda: voices.add("x", "me.flac", text=""), shoal.InvalidArgument),
                               (lambda: voices.add("x", "no.flac", text="No."), shoal.NotFound),
                               (lambda: voices.add("x", 7, text="No."), TypeError),
                               (lambda: voices.get(7), TypeError)):
            with self.assertRaises(error):
                refused()
        self.assertNotIn(7, voices)


if __name__ == "__main__":
    unittest.main()
