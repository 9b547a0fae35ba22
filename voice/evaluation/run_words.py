"""Word errors of the sound that `shoal bench serve --keep-audio` kept, by pocketsphinx.

  run_words.py RUN --shoal PROGRAM

Reads RUN/requests.jsonl and the waves it names, writes RUN/words.json and prints a line for each level. Texts are compared as
PROGRAM normalises them. Needs numpy and the Debian packages pocketsphinx and pocketsphinx-en-us.
"""
import argparse
import json
import wave as wave_files
from pathlib import Path

import numpy as np

import training_path  # noqa: F401
from engine import spoken_form
from inputs import InputError, require_file, run_tool
from word_errors import WordListener, word_errors, words

RATE_HZ = 16_000  # what the recogniser hears


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="folder of a run with --keep-audio")
    parser.add_argument("--shoal", type=Path, required=True, metavar="PROGRAM", help="for its normaliser")
    return parser.parse_args()


def heard_rate(samples: np.ndarray, rate_hz: int) -> np.ndarray:
    """int16 [samples] at RATE_HZ; what lies above half of it is cut off."""
    count = round(len(samples) * RATE_HZ / rate_hz)
    if count == 0:
        return np.zeros(0, np.int16)
    spectrum = np.fft.rfft(samples.astype(np.float64))
    kept = np.zeros(count // 2 + 1, complex)
    shared = min(len(kept), len(spectrum))
    kept[:shared] = spectrum[:shared]
    wave = np.fft.irfft(kept, count) * (count / len(samples))
    return np.clip(np.round(wave), -32768, 32767).astype(np.int16)


def read_wave(path: Path) -> np.ndarray:
    try:
        with wave_files.open(str(path)) as file:
            if file.getsampwidth() != 2 or file.getnchannels() != 1:
                raise InputError(f"{path}: expected 16-bit mono")
            return heard_rate(np.frombuffer(file.readframes(file.getnframes()), "<i2"), file.getframerate())
    except (wave_files.Error, EOFError) as error:
        raise InputError(f"{path}: {error}") from error


def completed_requests(run: Path) -> list[dict]:
    path = require_file(run / "requests.jsonl", "give the folder of a run")
    requests = [json.loads(line) for line in path.read_text().splitlines()]
    kept = [request for request in requests if request["outcome"] == "completed" and request.get("audio")]
    if not kept:
        raise InputError(f"{run}: no completed request has sound; run shoal bench serve with --keep-audio")
    return sorted(kept, key=lambda request: (request["level"], request["index"]))


def main() -> None:
    options = _options()
    requests = completed_requests(options.run)
    listener = WordListener(options.run / "heard.json")
    heard = listener.hear([read_wave(options.run / request["audio"]) for request in requests])
    spoken = {text: spoken_form(options.shoal, text) for request in requests for text in request["texts"]}
    levels: dict[int, dict] = {}
    results = []
    for request, words_heard in zip(requests, heard):
        text = " ".join(spoken[text] for text in request["texts"])
        result = {"level": request["level"], "index": request["index"], "words": len(words(text)),
                  "errors": word_errors(text, words_heard), "heard": words_heard}
        results.append(result)
        level = levels.setdefault(request["level"], {"level": request["level"], "requests": 0, "words": 0, "errors": 0})
        level["requests"] += 1
        level["words"] += result["words"]
        level["errors"] += result["errors"]
    for level in levels.values():
        level["share"] = level["errors"] / max(1, level["words"])
        print(f"level {level['level']}: {level['requests']} requests, {100 * level['share']:.1f} % of {level['words']} words wrong")
    report = {"schema": "shoal-bench-words-1", "levels": list(levels.values()), "requests": results}
    (options.run / "words.json").write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    run_tool(main)
