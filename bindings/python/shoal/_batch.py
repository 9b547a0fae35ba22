"""Many texts through one engine."""
from __future__ import annotations

import ctypes
from typing import Any, Callable, Iterable

from . import _errors, _library
from ._request import Request, request_handle, with_defaults
from ._speech import Speech, Summary
from ._waiting import PATIENCE_MS


class BatchResult:
    """An item of a batch: its speech, or the error that it ended with."""

    __slots__ = ("index", "speech", "error")

    def __init__(self, index: int, speech: Speech | None, error: _errors.Error | None):
        self.index = index  # of its text
        self.speech = speech
        self.error = error

    def __repr__(self) -> str:
        return f"<shoal.BatchResult {self.index}: {self.error or self.speech}>"

    def get(self) -> Speech:
        """The speech; raises the error if there is none."""
        if self.error is not None:
            raise self.error
        assert self.speech is not None
        return self.speech


class Batch:
    """A batch on its way."""

    def __init__(self, engine: _library.Handle, items: Iterable[str | Request], seed: int | None, max_in_flight: int,
                 max_item_s: float, defaults: dict[str, Any], inbox: Any = None, token: int = 0):
        if isinstance(items, (str, bytes)) or not hasattr(items, "__iter__"):
            raise TypeError(f"items: expected a list of texts, got {type(items).__name__}")
        self._refused: dict[int, _errors.Error] = {}
        handles = []
        for index, item in enumerate(items):
            try:
                handles.append(request_handle(with_defaults(item, defaults), delivery="whole"))
            except _errors.Error as error:
                self._refused[index] = error
                handles.append(request_handle(Request()))  # keeps the place, on which seeds depend; it is refused too
        self.results: list[Any] = [None] * len(handles)
        options = _library.BatchOptionsStruct()
        if seed is not None:
            options.seed, options.has_seed = seed, 1
        options.max_in_flight, options.max_item_s = max_in_flight, max_item_s
        if inbox is not None:
            options.mailbox, options.token = inbox.mailbox.value, token
        requests = (ctypes.c_void_p * len(handles))(*(handle.value for handle in handles))
        self._handle = _library.Handle(
            _library.call_out("shoal_engine_batch", engine.value, requests, len(handles), ctypes.byref(options)),
            "shoal_batch_free")

    def take(self, timeout_ms: int = PATIENCE_MS) -> BatchResult | int:
        """The next item that has ended, or NOT_YET, or END."""
        out = ctypes.c_void_p()
        code = _library.call("shoal_batch_next", self._handle.value, timeout_ms, ctypes.byref(out))
        if code != _library.OK:
            return code
        item = _library.Handle(out.value, "shoal_item_free")
        index = _library.library().shoal_item_index(item.value)
        refused = self._refused.get(index)
        result = BatchResult(index, None, refused) if refused else BatchResult(index, *self._outcome(item))
        self.results[index] = result
        return result

    @staticmethod
    def _outcome(item: _library.Handle) -> tuple[Speech | None, _errors.Error | None]:
        try:
            _library.call("shoal_item_status", item.value)
        except _errors.Error as error:
            return None, error
        struct = _library.SummaryStruct()
        _library.call("shoal_item_summary", item.value, ctypes.byref(struct))
        warnings = _library.call_json("shoal_item_warnings", item.value)
        return Speech(_library.call_bytes("shoal_item_samples", item.value), Summary.of(struct), [], warnings), None

    def cancel(self) -> None:
        _library.call("shoal_batch_cancel", self._handle.value)

    def run(self, on_item: Callable[[BatchResult], Any] | None) -> list[BatchResult]:
        """Waits for all; whatever interrupts that cancels the rest."""
        try:
            while True:
                result = self.take()
                if result == _library.END:
                    return self.results
                if on_item is not None and isinstance(result, BatchResult):
                    on_item(result)
        except BaseException:
            self.cancel()
            raise


class AsyncBatch:
    """A batch that an event loop waits for."""

    def __init__(self, engine: _library.Handle, items: Iterable[str | Request], seed: int | None, max_in_flight: int,
                 max_item_s: float, defaults: dict[str, Any]):
        from ._inbox import Sleeper, inbox_of_running_loop
        self._inbox = inbox_of_running_loop()
        self._sleeper = Sleeper()
        self._token = self._inbox.enter(self)
        self._batch = Batch(engine, items, seed, max_in_flight, max_item_s, defaults, self._inbox, self._token)

    def _wake(self) -> None:
        self._sleeper.wake()

    async def run(self, on_item: Callable[[BatchResult], Any] | None) -> list[BatchResult]:
        try:
            while True:
                self._sleeper.reset()
                result = self._batch.take(0)
                if result == _library.END:
                    return self._batch.results
                if result == _library.NOT_YET:
                    await self._sleeper.sleep()
                elif on_item is not None and isinstance(result, BatchResult):
                    on_item(result)
        except BaseException:
            self._batch.cancel()
            raise
        finally:
            self._inbox.leave(self._token)
