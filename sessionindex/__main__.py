"""`python -m sessionindex` and the installed command."""

import sys


def main() -> None:
    try:
        from sessionindex.cli.app import run

        status = run()
    except KeyboardInterrupt:
        status = 130
    sys.exit(status)


if __name__ == "__main__":
    main()
