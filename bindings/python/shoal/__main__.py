"""`python -m shoal`: the program of the package, which takes this process's place."""
import os
import sys

from ._library import NATIVE


def main() -> None:
    program = os.path.join(NATIVE, "bin", "shoal")
    try:
        os.execv(program, ["shoal", *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"{program}: {error.strerror}")


if __name__ == "__main__":
    main()
