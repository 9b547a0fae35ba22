"""The code of docs/PYTHON.md, the snippet that the package was asked for, and the examples, run as they stand."""
import ast
import asyncio
import importlib.util
import inspect
import io
import os
import re
import sys
import types
import unittest
from contextlib import redirect_stdout
from pathlib import Path

import shoal
from support import ROOT, WithEngine, WithFolder

EXAMPLES = ROOT / "examples/python"


def run_block(code, name, line, names):
    """Runs code that may await at its top level, as a notebook does."""
    tree = ast.parse("\n" * line + code, name)
    compiled = compile(tree, name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    function = types.FunctionType(compiled, names)
    if compiled.co_flags & inspect.CO_COROUTINE:
        asyncio.run(function())
    else:
        function()


class Page(WithFolder):
    def test_every_block_of_the_page_runs(self):
        output = self.run_page("docs/PYTHON.md", {})
        self.assertIn("not_found", output)
        self.assertTrue(Path("hello.wav").exists())

    def test_the_block_of_the_readme_runs(self):
        heard = []
        self.run_page("README.md", {"play": heard.append})
        self.assertTrue(heard)

    def run_page(self, page, names):
        """Runs the blocks one after the other; returns what they print."""
        text = (ROOT / page).read_text()
        output = io.StringIO()
        with redirect_stdout(output):
            for block in re.finditer(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
                run_block(block.group(1), page, text.count("\n", 0, block.start(1)), names)
        return output.getvalue()


SNIPPET = '''
import shoal
with shoal.Engine() as engine:                         # or Engine("path/to/openaudio-s1-mini", device="cuda")
    speech = engine.speak("Hello there.", voice="clara", seed=7)
    speech.save("hello.wav"); speech.samples           # float32 [samples], speech.sample_rate
    for chunk in engine.stream("A longer text ..."): player.write(chunk.pcm16)
    speech = await engine.speak_async("...")           # asyncio, cancelled with the task; async for chunk in engine.stream_async(...)
    results = engine.speak_batch([...])                # order kept, an item's error is its own
    engine.voices.add("me", "me.flac", text="what I say there"); engine.encode("clip.wav"); engine.stats(); engine.health()
'''.replace('speak_async("...")', 'speak_async("A text.")').replace("[...]", '["A text.", "Another."]')


class Snippet(WithFolder):
    def test_runs_line_for_line(self):
        with shoal.Engine() as engine:
            engine.speak("What I say there.", seed=1).save("me.flac")
            engine.speak("What I say there.", seed=2).save("clip.wav")
        player = io.BytesIO()
        run_block(SNIPPET, "snippet", 0, {"player": player})
        self.assertGreater(len(player.getvalue()), 16000)
        self.assertTrue(Path("hello.wav").exists())


def load(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Examples(WithEngine):
    def test_audiobook(self):
        Path("book.txt").write_text("A word before.\n\nChapter 1\nIt began.\n\nChapter 2\nIt ended.\n")
        with redirect_stdout(io.StringIO()):
            self.assertEqual(load("audiobook").main("book.txt", "out"), 0)
        self.assertEqual(sorted(os.listdir("out")), ["01 Beginning.flac", "02 Chapter 1.flac", "03 Chapter 2.flac"])

    def test_voice_agent(self):
        agent = load("voice_agent")

        async def questions():
            yield "First?"
            await asyncio.sleep(0.3)
            yield "Second?"

        async def short_answer(question):
            for word in f"You asked: {question} {'Yes. ' * (300 if question == 'First?' else 1)}".split():
                await asyncio.sleep(0.001)
                yield word

        agent.words_of_answer = short_answer
        output = io.StringIO()
        with redirect_stdout(output):
            asyncio.run(agent.conversation(self.engine, questions()))
        self.assertRegex(output.getvalue(), r"^interrupted after \d+ bytes\nanswered: \d+ bytes in all\n$")
        self.assert_idle()

    def test_fastapi_app(self):
        if importlib.util.find_spec("fastapi") is None:
            self.skipTest("fastapi is not installed")
        self.assertLessEqual((EXAMPLES / "fastapi_app.py").read_text().count("\n"), 30)
        module = load("fastapi_app")
        self.addCleanup(module.close)

        async def get(path, query):
            """The answer of the application to one request: status, body."""
            sent = []

            async def receive():
                await asyncio.sleep(3600 if sent else 0)
                return {"type": "http.request", "body": b"", "more_body": False}

            async def send(message):
                sent.append(message)

            await module.app({"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET",
                              "scheme": "http", "path": path, "raw_path": path.encode(), "root_path": "",
                              "query_string": query.encode(), "headers": [], "client": ("127.0.0.1", 1),
                              "server": ("127.0.0.1", 80)}, receive, send)
            return sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:])

        async def all_three():
            return await asyncio.gather(get("/speech", "text=Hello.&format=flac"), get("/stream", "text=Hello."),
                                        get("/speech", "text=Hello.&voice=nobody"))

        whole, streamed, refused = asyncio.run(all_three())
        self.assertEqual((whole[0], whole[1][:4]), (200, b"fLaC"))
        self.assertEqual(streamed[0], 200)
        self.assertGreater(len(streamed[1]), 1000)
        self.assertEqual(refused[0], 400)


if __name__ == "__main__":
    unittest.main()
