"""Shoal: text to speech for many listeners at once.

    import shoal
    with shoal.Engine() as engine:
        engine.speak("Hello there.", voice="clara").save("hello.wav")

docs/PYTHON.md shows everything. `python -m shoal` is the program.
"""
from __future__ import annotations

import atexit as _atexit

from . import _library
from ._batch import BatchResult
from ._engine import Engine, stop_all as _stop_all
from ._errors import (AlreadyExists, Cancelled, CorruptFile, DeadlineExceeded, Error, FileError, InternalError,
                      InvalidArgument, NotFound, ResourceExhausted, TooLarge, Unavailable, Unsupported)
from ._request import EncodedClip, Reference, Request
from ._settings import inspect, memory_plan, settings
from ._speech import Chunk, Sound, Speech, Summary, Word
from ._streams import AsyncStream, Stream
from ._voices import Voice, Voices

__all__ = [
    "AlreadyExists", "AsyncStream", "BatchResult", "Cancelled", "Chunk", "CorruptFile", "DeadlineExceeded",
    "EncodedClip", "Engine", "Error", "FileError", "InternalError", "InvalidArgument", "NotFound", "Reference",
    "Request", "ResourceExhausted", "Sound", "Speech", "Stream", "Summary", "TooLarge", "Unavailable", "Unsupported",
    "Voice", "Voices", "Word", "decode_sound", "inspect", "memory_plan", "settings",
]


def decode_sound(audio) -> Sound:
    """A sound file (a path, or the bytes of a wav, flac, ogg, mp3 or aiff file) as samples at its own rate."""
    from ctypes import byref, c_int32, c_void_p
    data = _library.audio_argument("audio", audio)
    out, rate = c_void_p(), c_int32()
    _library.call("shoal_decode_sound", data, len(data), byref(out), byref(rate))
    return Sound(_library.take_buffer(out.value), rate.value)


def __getattr__(name: str):
    if name == "__version__":
        return _library.library().shoal_version().decode()
    raise AttributeError(f"module 'shoal' has no attribute {name!r}")


def _at_exit() -> None:
    if _library._loaded is not None:
        from . import _log
        _stop_all()
        _log.disconnect(_library._loaded)
        _library.exiting = True


_atexit.register(_at_exit)
