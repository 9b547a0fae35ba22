"""Waiting for the engine so that Ctrl-C works: a signal's handler runs when the main thread is back in Python."""
from __future__ import annotations

import threading

# The longest wait inside the library, after which Python looks for signals.
PATIENCE_MS = 50


def interruptible(function, *arguments):
    """function(*arguments), which may take seconds, so that the main thread can be interrupted meanwhile. The call then
    goes on in a thread of its own, and its result is dropped."""
    if threading.current_thread() is not threading.main_thread():
        return function(*arguments)
    outcome = []
    done = threading.Event()

    def work():
        try:
            outcome.append((function(*arguments), None))
        except BaseException as error:  # handed to the caller
            outcome.append((None, error))
        finally:
            done.set()

    threading.Thread(target=work, name="shoal call").start()
    done.wait()
    result, error = outcome.pop()
    if error is not None:
        raise error
    return result
