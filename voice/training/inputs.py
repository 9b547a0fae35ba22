"""Missing or wrong inputs: one error type, which the command line tools report in one sentence."""
import sys
from collections.abc import Callable
from pathlib import Path


class InputError(Exception):
    """The user can fix this: a file, a package or an option is missing or wrong."""


def require_file(path: Path | str, remedy: str) -> Path:
    """Returns the path, or fails with the remedy, which says where such a file comes from."""
    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path} does not exist: {remedy}")
    return path


def run_tool(main: Callable[[], None]) -> None:
    """Runs a command line tool: an InputError becomes one line on stderr and exit status 1."""
    try:
        main()
    except InputError as error:
        sys.exit(f"{Path(sys.argv[0]).name}: error: {error}")
