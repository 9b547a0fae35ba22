"""What goes wrong, as exceptions: one class for each code of the engine."""
from __future__ import annotations


class Error(Exception):
    """The base of everything that Shoal raises. `code` is the engine's name of the failure: "not_found"."""

    code = "unknown"


class InvalidArgument(Error, ValueError):
    """A value is wrong: the message names the field, what was expected and what was found."""

    code = "invalid_argument"


class NotFound(Error, LookupError):
    """A file, a voice or a tensor that was named does not exist."""

    code = "not_found"


class AlreadyExists(Error, ValueError):
    """The name is taken."""

    code = "already_exists"


class Unsupported(Error, NotImplementedError):
    """Well-formed, but not something that this build or model can do."""

    code = "unsupported"


class CorruptFile(Error, ValueError):
    """The bytes of a file contradict its format or themselves."""

    code = "corrupt_file"


class TooLarge(Error, ValueError):
    """Over a stated limit."""

    code = "too_large"


class Cancelled(Error):
    """The request was cancelled."""

    code = "cancelled"


class DeadlineExceeded(Error, TimeoutError):
    """The request's time was up."""

    code = "deadline_exceeded"


class ResourceExhausted(Error, RuntimeError):
    """Memory, a disk or a queue is full."""

    code = "resource_exhausted"


class FileError(Error, OSError):
    """The operating system refused a read or a write."""

    code = "io"


class Unavailable(Error, RuntimeError):
    """No such device, an engine that does not run or is closed, or a process that was forked beside one."""

    code = "unavailable"


class InternalError(Error, RuntimeError):
    """A fault of Shoal itself."""

    code = "internal"


# By the number of shoal.h.
BY_NUMBER = dict(enumerate(
    [InvalidArgument, NotFound, AlreadyExists, Unsupported, CorruptFile, TooLarge, Cancelled, DeadlineExceeded,
     ResourceExhausted, FileError, Unavailable, InternalError], start=1))
