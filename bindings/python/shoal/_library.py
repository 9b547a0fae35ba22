"""libshoal.so through ctypes: the functions of include/shoal/shoal.h, loaded when the first of them is needed.

ctypes lets go of the interpreter's lock during every call, so other Python threads run while the engine works.
"""
from __future__ import annotations

import ctypes
import json
import os
import threading
from ctypes import POINTER, c_char_p, c_double, c_float, c_int16, c_int32, c_int64, c_size_t, c_uint64, c_void_p
from typing import Any

from . import _errors

NATIVE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "native")
ABI_VERSION = 1
OK, END, NOT_YET = 0, -1, -2
CANCELLED = 7


class ErrorStruct(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("code", c_int32), ("reserved", c_int32), ("message", ctypes.c_char * 1008)]

    def __init__(self):
        super().__init__(size=ctypes.sizeof(ErrorStruct))

    def exception(self) -> Exception:
        kind = _errors.BY_NUMBER.get(self.code, _errors.InternalError)
        return kind(self.message.decode("utf-8", "replace"))


class SummaryStruct(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t), ("seed", c_uint64), ("samples", c_int64), ("frames", c_int64), ("utterances", c_int64),
        ("prompt_columns", c_int64), ("cached_columns", c_int64), ("computed_columns", c_int64),
        ("preemptions", c_int64), ("cut_at_frames", c_int64), ("underruns", c_int64), ("prepared_s", c_double),
        ("admitted_s", c_double), ("first_audio_s", c_double), ("total_s", c_double), ("audio_s", c_double),
        ("sample_rate_hz", c_int32), ("reserved", c_int32),
    ]

    def __init__(self):
        super().__init__(size=ctypes.sizeof(SummaryStruct))


class ProgressStruct(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("fraction", c_double), ("frames", c_int64), ("audio_s", c_double)]

    def __init__(self):
        super().__init__(size=ctypes.sizeof(ProgressStruct))


class BatchOptionsStruct(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("seed", c_uint64), ("has_seed", c_int32), ("max_in_flight", c_int32),
                ("max_item_s", c_double), ("mailbox", c_void_p), ("token", c_uint64)]

    def __init__(self):
        super().__init__(size=ctypes.sizeof(BatchOptionsStruct))


LOG_FUNCTION = ctypes.CFUNCTYPE(None, c_void_p, c_int32, c_char_p)

_OUT = POINTER(c_void_p)  # receives a handle or a buffer
_INT_OUT = POINTER(c_int32)
# The parameters of every function that returns a code, without the error, which comes last.
_CHECKED = {
    "shoal_set_log": [c_void_p, c_void_p],
    "shoal_config_new": [_OUT],
    "shoal_config_set": [c_void_p, c_char_p, c_char_p],
    "shoal_config_get": [c_void_p, c_char_p, _OUT],
    "shoal_config_load": [c_void_p, c_char_p, c_int32],
    "shoal_config_fields": [_OUT],
    "shoal_inspect_model": [c_char_p, c_char_p, c_int32, _OUT],
    "shoal_estimate_memory": [c_void_p, _OUT],
    "shoal_request_new": [_OUT],
    "shoal_request_set": [c_void_p, c_char_p, c_char_p],
    "shoal_request_add_reference": [c_void_p, c_char_p, c_size_t, c_char_p],
    "shoal_request_add_codes": [c_void_p, c_char_p, c_size_t, c_char_p],
    "shoal_engine_new": [c_void_p, _OUT],
    "shoal_engine_start": [c_void_p],
    "shoal_engine_stop": [c_void_p, c_int64],
    "shoal_engine_reload": [c_void_p, c_void_p],
    "shoal_engine_sample_rate": [c_void_p, _INT_OUT],
    "shoal_engine_traits": [c_void_p, _OUT],
    "shoal_engine_health": [c_void_p, _OUT],
    "shoal_engine_statistics": [c_void_p, _OUT],
    "shoal_engine_self_test": [c_void_p, _OUT],
    "shoal_engine_encode": [c_void_p, c_char_p, c_size_t, _OUT, _INT_OUT],
    "shoal_engine_decode": [c_void_p, c_char_p, c_size_t, _OUT],
    "shoal_engine_phonemize": [c_void_p, c_char_p, c_char_p, c_int32, _OUT],
    "shoal_engine_submit": [c_void_p, c_void_p, c_void_p, _OUT],
    "shoal_speech_next": [c_void_p, c_int64, _OUT],
    "shoal_speech_cancel": [c_void_p],
    "shoal_speech_sample_rate": [c_void_p, _INT_OUT],
    "shoal_speech_summary": [c_void_p, POINTER(SummaryStruct)],
    "shoal_speech_progress": [c_void_p, POINTER(ProgressStruct)],
    "shoal_speech_warnings": [c_void_p, _OUT],
    "shoal_speech_codes": [c_void_p, _OUT],
    "shoal_speech_words": [c_void_p, c_size_t, _OUT],
    "shoal_speech_watch": [c_void_p, c_void_p, c_uint64],
    "shoal_mailbox_new": [_OUT],
    "shoal_mailbox_take": [c_void_p, c_int64, POINTER(c_uint64), c_size_t, POINTER(c_size_t)],
    "shoal_engine_batch": [c_void_p, _OUT, c_size_t, POINTER(BatchOptionsStruct), _OUT],
    "shoal_batch_cancel": [c_void_p],
    "shoal_batch_next": [c_void_p, c_int64, _OUT],
    "shoal_item_status": [c_void_p],
    "shoal_item_samples": [c_void_p, _OUT],
    "shoal_item_summary": [c_void_p, POINTER(SummaryStruct)],
    "shoal_item_warnings": [c_void_p, _OUT],
    "shoal_engine_voices": [c_void_p, _OUT],
    "shoal_voices_list": [c_void_p, _OUT],
    "shoal_voices_get": [c_void_p, c_char_p, _OUT],
    "shoal_voices_add": [c_void_p, c_char_p, c_char_p, c_size_t, c_char_p],
    "shoal_voices_rename": [c_void_p, c_char_p, c_char_p],
    "shoal_voices_remove": [c_void_p, c_char_p],
    "shoal_to_pcm16": [POINTER(c_float), c_size_t, POINTER(c_int16)],
    "shoal_encode_sound": [c_char_p, c_int32, c_int32, POINTER(c_float), c_size_t, _OUT],
    "shoal_decode_sound": [c_char_p, c_size_t, _OUT, _INT_OUT],
}
# The others: result, parameters.
_PLAIN: dict[str, tuple[Any, list[Any]]] = {
    "shoal_abi_version": (c_int32, []),
    "shoal_version": (c_char_p, []),
    "shoal_buffer_data": (c_void_p, [c_void_p]),
    "shoal_buffer_size": (c_size_t, [c_void_p]),
    "shoal_mailbox_fd": (c_int32, [c_void_p]),
    "shoal_item_index": (c_size_t, [c_void_p]),
    **{name: (None, [c_void_p]) for name in (
        "shoal_buffer_free", "shoal_config_free", "shoal_request_free", "shoal_engine_free_later",
        "shoal_speech_free", "shoal_mailbox_free", "shoal_batch_free", "shoal_item_free", "shoal_voices_free")},
}

_lock = threading.Lock()
_loaded = None


def library():
    """libshoal.so, with its functions declared. Raises ImportError when it is not in the package."""
    return _loaded or _load()


def _load():
    global _loaded
    with _lock:
        if _loaded is not None:
            return _loaded
        path = os.path.join(NATIVE, "lib", "libshoal.so")
        if not os.path.exists(path):
            raise ImportError(f"{path} is missing: install the package with `pip install .` or a wheel (docs/PYTHON.md)")
        loaded = ctypes.CDLL(path)
        for name, parameters in _CHECKED.items():
            function = getattr(loaded, name)
            function.restype = c_int32
            function.argtypes = [*parameters, POINTER(ErrorStruct)]
        for name, (result, parameters) in _PLAIN.items():
            function = getattr(loaded, name)
            function.restype, function.argtypes = result, parameters
        if loaded.shoal_abi_version() < ABI_VERSION:
            raise ImportError(f"{path} is older than this package")
        from . import _log
        _log.connect(loaded)
        _loaded = loaded
        return loaded


def call(name, *arguments):
    """Calls a function that returns a code. Raises its error; returns OK, END or NOT_YET."""
    error = ErrorStruct()
    code = getattr(library(), name)(*arguments, ctypes.byref(error))
    if code > 0:
        raise error.exception()
    return code


def call_out(name, *arguments):
    """The same for a function whose last parameter receives a handle or a buffer, which is returned."""
    out = c_void_p()
    call(name, *arguments, ctypes.byref(out))
    return out.value


def take_buffer(buffer) -> bytes:
    """The bytes of a buffer, which is freed."""
    loaded = library()
    try:
        return ctypes.string_at(loaded.shoal_buffer_data(buffer), loaded.shoal_buffer_size(buffer))
    finally:
        loaded.shoal_buffer_free(buffer)


def call_bytes(name, *arguments) -> bytes:
    return take_buffer(call_out(name, *arguments))


def call_json(name, *arguments):
    return json.loads(call_bytes(name, *arguments))


class Handle:
    """Owns what the library gave. It is freed when nobody refers to it any more, and so never during a call: whoever
    calls holds a reference."""

    __slots__ = ("value", "_free", "__weakref__")

    def __init__(self, value, free_name):
        self.value = value
        self._free = getattr(library(), free_name)

    def __del__(self):
        # At the end of the process the library's threads have ended, and its memory goes with the process.
        if exiting is False:
            self._free(self.value)


exiting = False


def floats(data: bytes):
    """(pointer to the samples in `data`, their number), for a call."""
    return ctypes.cast(ctypes.c_char_p(data), POINTER(c_float)), len(data) // 4


def text_argument(name: str, value) -> bytes:
    """A str as the library takes it. Raises TypeError, InvalidArgument."""
    if not isinstance(value, str):
        raise TypeError(f"{name}: expected str, got {type(value).__name__}")
    if "\0" in value:
        raise _errors.InvalidArgument(f"{name}: expected a text without NUL characters")
    try:
        return value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise _errors.InvalidArgument(f"{name}: expected valid Unicode, found half a surrogate pair "
                                      f"at character {error.start}") from None


def value_argument(name: str, value) -> bytes:
    """A str, a number, a bool or a path as the text that settings and fields take. Raises TypeError."""
    if isinstance(value, bool):
        return b"true" if value else b"false"
    if isinstance(value, (int, float)):
        return repr(value).encode()
    if hasattr(value, "__index__"):  # an integer of numpy
        return repr(value.__index__()).encode()
    if hasattr(value, "__float__") and not isinstance(value, str):
        return repr(float(value)).encode()
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    return text_argument(name, value)


def audio_argument(name: str, value) -> bytes:
    """The bytes of a sound file: given as bytes, or as the path of one. Raises TypeError, NotFound, FileError."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    if not isinstance(value, (str, os.PathLike)):
        raise TypeError(f"{name}: expected a path or bytes, got {type(value).__name__}")
    try:
        with open(value, "rb") as file:
            return file.read()
    except FileNotFoundError:
        raise _errors.NotFound(f"{name}: there is no file {os.fspath(value)}") from None
    except OSError as error:
        raise _errors.FileError(f"{name}: {error}") from None
