"""Settings of an engine (docs/SETTINGS.md), and what can be asked about models before one is loaded."""
from __future__ import annotations

import os
from typing import Any

from . import _library


def config_handle(model="", device=None, config=None, environment=False, settings=None) -> _library.Handle:
    """A configuration: of the file `config` and the environment, if they are given, then the values named here."""
    handle = _library.Handle(_library.call_out("shoal_config_new"), "shoal_config_free")
    if config is not None or environment:
        path = None if config is None else _library.value_argument("config", config)
        _library.call("shoal_config_load", handle.value, path, int(environment))
    given = dict(settings or {})
    if model:
        given["model"] = os.path.expanduser(model) if isinstance(model, str) else model
    if device is not None:
        given["device"] = device
    for name, value in given.items():
        if value is not None:
            _library.call("shoal_config_set", handle.value, name.encode(), _library.value_argument(name, value))
    return handle


def settings() -> list[dict[str, Any]]:
    """Every setting that `Engine` takes by keyword: name, type, default, range, help."""
    return _library.call_json("shoal_config_fields")


def inspect(model: str | os.PathLike[str] = "", *, precision: str = "", tensors: bool = False) -> dict[str, Any]:
    """What a model folder contains, and what is missing; "" is the built-in voice. Loads no weights.

    tensors: also list every tensor with dtype and shape. Raises NotFound, CorruptFile, InvalidArgument.
    """
    return _library.call_json("shoal_inspect_model", _library.value_argument("model", model),
                              _library.text_argument("precision", precision), int(tensors))


def memory_plan(model: str | os.PathLike[str] = "", *, device: str | None = None, config: Any = None,
                environment: bool = False, **settings: Any) -> dict[str, Any]:
    """The memory that an engine with these settings would take, in bytes by part, and whether it fits. Nothing is
    allocated. The arguments are those of `Engine`."""
    handle = config_handle(model, device, config, environment, settings)
    return _library.call_json("shoal_estimate_memory", handle.value)
