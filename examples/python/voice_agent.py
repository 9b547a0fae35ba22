"""The loop of a voice agent: it answers, sentence by sentence while its words still arrive, and falls silent as soon as
the listener speaks.

    python voice_agent.py

Microphone, language model and loudspeaker are stand-ins here; the cancellation is real.
"""
import asyncio

import shoal


async def words_of_answer(question):
    """A language model that thinks aloud, word by word."""
    answer = f"You asked: {question} Let me tell you a long story about it. " + "It goes on and on. " * 20
    for word in answer.split():
        await asyncio.sleep(0.005)
        yield word


async def sentences(words):
    """Words as whole sentences, which sound better than fragments."""
    sentence = []
    async for word in words:
        sentence.append(word)
        if word[-1] in ".?!":
            yield " ".join(sentence)
            sentence = []
    if sentence:
        yield " ".join(sentence)


async def answer(engine, question, player):
    """Speaks until the end, or until this task is cancelled: then the sound stops, and the engine with it."""
    async for sentence in sentences(words_of_answer(question)):
        async for chunk in engine.stream_async(sentence, voice="hugo", seed=7):
            await player.play(chunk.pcm16)


class Player:
    """A loudspeaker that only counts. A real one paces its caller, and drops what is queued when it is told to."""

    def __init__(self):
        self.played = 0

    async def play(self, pcm16):
        self.played += len(pcm16)

    def drop_queue(self):
        pass


async def conversation(engine, questions):
    """Each question that arrives interrupts the answer to the one before."""
    player, speaking = Player(), None
    async for question in questions:
        if speaking is not None and not speaking.done():
            speaking.cancel()
            await asyncio.gather(speaking, return_exceptions=True)
            player.drop_queue()
            print(f"interrupted after {player.played} bytes")
        speaking = asyncio.create_task(answer(engine, question, player))
    await speaking
    print(f"answered: {player.played} bytes in all")


async def microphone():
    for question in ("What is a shoal?", "And how many fish are in one?"):
        yield question
        await asyncio.sleep(0.5)


if __name__ == "__main__":
    with shoal.Engine() as the_engine:
        asyncio.run(conversation(the_engine, microphone()))
