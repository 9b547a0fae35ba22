import asyncio
import gc
import threading
import unittest

import shoal
from support import LONG, WithEngine


class Asyncio(WithEngine):
    def test_speaks_the_same(self):
        async def main():
            whole = await self.engine.speak_async("Hello there. And more.", seed=7)
            pieces = [chunk.data async for chunk in self.engine.stream_async("Hello there. And more.", seed=7)]
            return whole, pieces

        whole, pieces = asyncio.run(main())
        self.assertEqual(whole.data, self.engine.speak("Hello there. And more.", seed=7).data)
        self.assertEqual(b"".join(pieces), whole.data)

    def test_64_streams_at_once_with_cancels(self):
        expected = {i: self.engine.speak(f"Number {i}.", seed=i).data for i in range(0, 16, 4)}

        async def whole(i):
            i %= 16
            return b"".join([chunk.data async for chunk in self.engine.stream_async(f"Number {i}.", seed=i)])

        async def leaves(i):
            async with self.engine.stream_async(LONG, seed=i) as stream:
                for _ in range(i % 3 + 1):
                    await stream.__anext__()

        async def is_cancelled(i):
            task = asyncio.create_task(self.engine.speak_async(LONG, seed=i))
            await asyncio.sleep(0.01 * (i % 7))
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task

        async def drops(i):
            await self.engine.stream_async(LONG, seed=i).__anext__()

        kinds = [whole, leaves, is_cancelled, drops]

        async def main():
            return await asyncio.gather(*(kinds[i % 4](i) for i in range(64)))

        results = asyncio.run(main(), debug=True)
        self.assertEqual(results[::4], [expected[i % 16] for i in range(0, 64, 4)])
        gc.collect()
        self.assert_idle()

    def test_cancelling_the_task_cancels_the_speech(self):
        async def main():
            async def listen():
                async for _ in self.engine.stream_async(LONG):
                    heard.set()

            heard = asyncio.Event()
            task = asyncio.create_task(listen())
            await heard.wait()
            task.cancel()
            outcome = (await asyncio.gather(task, return_exceptions=True))[0]
            self.assertIsInstance(outcome, asyncio.CancelledError)
            self.assert_idle()  # while the exception and its frames still live

        asyncio.run(main())

    def test_a_time_limit_cancels_the_speech(self):
        async def main():
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(self.engine.speak_async(LONG), 0.05)

        asyncio.run(main())
        self.assert_idle()

    def test_a_stream_belongs_to_one_loop(self):
        stream = None

        async def begin():
            nonlocal stream
            stream = self.engine.stream_async(LONG)
            await stream.__anext__()

        async def go_on():
            with self.assertRaisesRegex(RuntimeError, "another event loop"):
                await stream.__anext__()

        asyncio.run(begin())
        asyncio.run(go_on())
        stream.close()

    def test_two_loops_in_two_threads(self):
        results = []

        def listen(seed):
            results.append((seed, asyncio.run(self.engine.speak_async("Hello there.", seed=seed)).data))

        threads = [threading.Thread(target=listen, args=(seed,)) for seed in (1, 2, 1, 2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(dict(results), {seed: self.engine.speak("Hello there.", seed=seed).data for seed in (1, 2)})

    def test_two_tasks_cannot_read_one_stream(self):
        async def read(stream):
            async for _ in stream:
                await asyncio.sleep(0)  # the other's turn, even if the next chunk is here already

        async def main():
            stream = self.engine.stream_async("Hello there. And more. " * 5)
            return await asyncio.gather(read(stream), read(stream), return_exceptions=True)

        # The first that has to wait keeps the other out, and reads to the end.
        outcomes = sorted(asyncio.run(main()), key=lambda outcome: outcome is None)
        self.assertIsInstance(outcomes[0], RuntimeError)
        self.assertIsNone(outcomes[1])

    def test_closing_wakes_the_reader(self):
        async def main():
            stream = self.engine.stream_async(LONG)
            asyncio.get_running_loop().call_later(0.05, stream.close)
            return [chunk async for chunk in stream]

        asyncio.run(main())
        self.assert_idle()

    def test_errors_are_raised_where_they_are_awaited(self):
        async def main():
            with self.assertRaises(shoal.NotFound):
                await self.engine.speak_async("Hello.", voice="nobody")
            with self.assertRaises(shoal.CorruptFile):
                await self.engine.speak_async("Hello.", references=[(b"no sound" * 100, "words")])

        asyncio.run(main())

    def test_a_batch_leaves_the_loop_free(self):
        async def main():
            ticks = 0

            async def tick():
                nonlocal ticks
                while True:
                    await asyncio.sleep(0.002)
                    ticks += 1

            ticking = asyncio.create_task(tick())
            results = await self.engine.speak_batch_async([f"Number {i}." for i in range(4)], seed=3)
            ticking.cancel()
            return results, ticks

        results, ticks = asyncio.run(main())
        self.assertGreater(ticks, 3)
        expected = self.engine.speak_batch([f"Number {i}." for i in range(4)], seed=3)
        self.assertEqual([r.get().data for r in results], [r.get().data for r in expected])

    def test_cancelling_a_batch_ends_it(self):
        async def main():
            task = asyncio.create_task(self.engine.speak_batch_async([LONG] * 8))
            await asyncio.sleep(0.05)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task

        asyncio.run(main())
        self.assert_idle()


if __name__ == "__main__":
    unittest.main()
