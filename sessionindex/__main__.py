"""`python -m sessionindex` and the installed command."""

import gc
import sys


def main() -> None:
    # Half of a short command is imports: nothing of them is garbage, neither now nor at the exit.
    gc.set_threshold(100_000)
    try:
        from sessionindex.cli.app import run

        status = run()
    except KeyboardInterrupt:
        status = 130
    gc.freeze()
    sys.exit(status)


if __name__ == "__main__":
    main()
