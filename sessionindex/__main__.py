"""`python -m sessionindex` and the installed command."""

import sys


def main() -> None:
    from sessionindex.cli.app import run

    sys.exit(run())


if __name__ == "__main__":
    main()
