"""`python -m sessionindex` and the installed command."""

import gc
import sys


def main() -> None:
    # Half of a short command is imports: nothing of them is garbage, neither now nor at the exit.
    gc.set_threshold(100_000)
    try:
        status = _run(sys.argv[1:])
    except KeyboardInterrupt:
        status = 130
    gc.freeze()
    sys.exit(status)


def _run(arguments: list[str]) -> int:
    """Carry out a command line: a plain search without click, all else with it."""
    from sessionindex.cli import plain

    asked = plain.read(arguments)
    if asked is None:
        from sessionindex.cli.app import run

        return run(arguments)
    from sessionindex.cli import ending

    def search() -> int:
        from sessionindex.cli import hits

        return hits.show(asked)

    ending.leave(ending.of(search))


if __name__ == "__main__":
    main()
