"""The library's messages, sent to Python's logger "shoal"."""
from __future__ import annotations

import ctypes
import logging

from . import _library

_LEVELS = {0: logging.DEBUG, 1: logging.INFO, 2: logging.WARNING, 3: logging.ERROR}
_logger = logging.getLogger("shoal")
_logger.addHandler(logging.NullHandler())


def _receive(user, level, message):
    try:
        _logger.log(_LEVELS.get(level, logging.ERROR), "%s", message.decode("utf-8", "replace"))
    except Exception:  # a handler's; the engine's thread has nobody to tell
        pass


_function = _library.LOG_FUNCTION(_receive)  # the library calls it as long as it is connected


def connect(loaded):
    error = _library.ErrorStruct()
    if loaded.shoal_set_log(_function, None, ctypes.byref(error)) > 0:
        raise error.exception()


def disconnect(loaded):
    """Returns when no thread of the engine is inside Python any more."""
    loaded.shoal_set_log(None, None, ctypes.byref(_library.ErrorStruct()))
