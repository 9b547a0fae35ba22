"""The voice as the engine speaks it: `shoal serve` on this machine, asked over HTTP; and its normaliser."""
import base64
import io
import json
import re
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
import wave as wave_files
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import training_path  # noqa: F401
from inputs import InputError
from pcm import FRAME_SAMPLES, INT16_SCALE, SAMPLE_RATE, to_int16, wav_bytes
from synthesis import SEED, Guide, Mode, Reference, Spoken

START_SECONDS = 180
STOP_SECONDS = 20
REQUEST_SECONDS = 590
CODEC_SECONDS = 300  # of sound in one request to the codec
SERVER_LIMITS = ["--max-batch-items", "1024", "--max-body-mb", "512", "--max-timeout-s", "600"]


def spoken_form(program: Path, text: str) -> str:
    """The text with numbers, money and dates as words, as the engine's models get it."""
    result = subprocess.run([program, "normalize", text], capture_output=True, text=True, timeout=20)
    if result.returncode:
        raise InputError(f"{program} normalize failed: {result.stderr.strip()}")
    return result.stdout.rstrip("\n")


def _base64_wav(samples: np.ndarray) -> str:
    return base64.b64encode(wav_bytes(samples)).decode()


def _read_wav(encoded: str) -> np.ndarray:
    with wave_files.open(io.BytesIO(base64.b64decode(encoded))) as file:
        if file.getframerate() != SAMPLE_RATE:
            raise InputError(f"the engine speaks at {file.getframerate()} Hz, expected {SAMPLE_RATE}")
        return np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.float32) / INT16_SCALE


class Engine:
    """A server of its own, ended with the `with` block."""

    def __init__(self, program: Path, options: Sequence[str], max_frames: int):
        self._max_frames = max_frames
        self._folder = tempfile.TemporaryDirectory()
        self._log = Path(self._folder.name) / "log"
        command = [str(program), "serve", "--listen", "127.0.0.1:0", *SERVER_LIMITS, *options]
        with open(self._log, "wb") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        self.ready = ""  # model, precision and device as the server says them
        self._url = ""

    def __enter__(self) -> "Engine":
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            text = self._log.read_text(errors="replace")
            address = re.search(r"listening on (http://\S+)", text)
            ready = re.search(r"ready: (.*)", text)
            if address and ready:
                self._url, self.ready = address[1], ready[1].strip()
                return self
            time.sleep(0.05)
        log = self._log.read_text(errors="replace").strip()[-500:]
        self.__exit__()
        raise InputError(f"the server did not get ready: {log}")

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._folder.cleanup()

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        request = urllib.request.Request(self._url + path, json.dumps(body).encode(), headers)
        try:
            with urllib.request.urlopen(request, timeout=REQUEST_SECONDS) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise InputError(f"{path}: {error.code} {error.read().decode(errors='replace')[:300]}") from error

    def speak(self, texts: Sequence[str], mode: Mode, guides: Sequence[Guide] = ()) -> list[Spoken]:
        items = []
        for text, guide in zip(texts, guides or [None] * len(texts)):
            item = {"text": text}
            if isinstance(guide, Reference):
                item |= {"reference_audio": _base64_wav(guide.samples), "reference_text": guide.text}
            elif guide:
                item["voice"] = guide
            items.append(item)
        body = {
            "items": items,
            "seed": SEED,
            "temperature": mode.temperature,
            "top_p": mode.top_p if mode.temperature else 0,
            "repetition_penalty": mode.penalty,
            "max_new_tokens": self._max_frames,
            "chunk_length": 0,
        }
        spoken = []
        for text, result in zip(texts, self._post("/v1/tts/batch", body)["results"]):
            if not result["success"]:
                raise InputError(f'"{text}": {result["error"]}')
            wave = _read_wav(result["audio_base64"])
            # The last frame of an utterance without an end is dropped.
            spoken.append(Spoken(wave, len(wave) < (self._max_frames - 1) * FRAME_SAMPLES))
        return spoken

    def resynthesise(self, waves: Sequence[np.ndarray]) -> list[np.ndarray]:
        decoded: list[np.ndarray] = []
        while len(decoded) < len(waves):
            chosen, seconds = [], 0.0
            for wave in waves[len(decoded) :]:
                seconds += len(wave) / SAMPLE_RATE
                if chosen and seconds > CODEC_SECONDS:
                    break
                chosen.append(_base64_wav(to_int16(wave)))
            tokens = self._post("/v1/vqgan/encode", {"audios": chosen})["tokens"]
            for half_floats in self._post("/v1/vqgan/decode", {"tokens": tokens})["audios"]:
                decoded.append(np.frombuffer(base64.b64decode(half_floats), "<f2").astype(np.float32))
        return decoded
