"""How an event loop learns that a speech has something to read: one mailbox of the library for each loop, whose file
descriptor the loop watches. No thread of the engine enters Python."""
from __future__ import annotations

import asyncio
import ctypes
import itertools
import weakref
from typing import Any

from . import _library

_CAPACITY = 64  # tokens taken at once
_inboxes: weakref.WeakKeyDictionary[Any, Inbox] = weakref.WeakKeyDictionary()


class Inbox:
    """Lives as long as its loop, which holds it as the reader of the descriptor."""

    def __init__(self, loop: asyncio.AbstractEventLoop):
        self.mailbox = _library.Handle(_library.call_out("shoal_mailbox_new"), "shoal_mailbox_free")
        self._tokens = itertools.count(1)
        self._readers: dict[int, Any] = {}  # token -> weak reference to what has _wake()
        self._taken = (ctypes.c_uint64 * _CAPACITY)()
        loop.add_reader(_library.library().shoal_mailbox_fd(self.mailbox.value), self._deliver)

    def enter(self, reader: Any) -> int:
        """A token for `reader`, whose _wake() is called on the loop's thread until it leaves or is gone."""
        token = next(self._tokens)
        self._readers[token] = weakref.ref(reader, lambda _: self._readers.pop(token, None))
        return token

    def leave(self, token: int) -> None:
        self._readers.pop(token, None)

    def _deliver(self) -> None:
        count = ctypes.c_size_t()
        code = _library.call("shoal_mailbox_take", self.mailbox.value, 0, self._taken, _CAPACITY, ctypes.byref(count))
        if code == _library.NOT_YET:
            return
        for token in self._taken[:count.value]:
            reference = self._readers.get(token)
            reader = reference() if reference is not None else None
            if reader is not None:
                reader._wake()


def inbox_of_running_loop() -> Inbox:
    loop = asyncio.get_running_loop()
    inbox = _inboxes.get(loop)
    if inbox is None:
        inbox = _inboxes[loop] = Inbox(loop)
    return inbox


class Sleeper:
    """One task that waits until it is woken. Everything happens on the loop's thread."""

    __slots__ = ("_future", "_woken")

    def __init__(self) -> None:
        self._future: asyncio.Future[None] | None = None
        self._woken = False

    @property
    def busy(self) -> bool:
        return self._future is not None

    def reset(self) -> None:
        self._woken = False

    def wake(self) -> None:
        self._woken = True
        if self._future is not None and not self._future.done():
            self._future.set_result(None)

    async def sleep(self) -> None:
        """Until wake() is called; not at all if it was since reset()."""
        if self._woken:
            return
        self._future = asyncio.get_running_loop().create_future()
        try:
            await self._future
        finally:
            self._future = None
