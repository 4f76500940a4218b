"""Options that every command takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


def root_options(command: Command) -> Command:
    """--root, --layout and --index-dir."""
    for option in (
        click.option("--index-dir", metavar="DIR", help="Where indexes are kept."),
        click.option(
            "--layout",
            type=click.Choice(["projects", "flat"]),
            help="How the root is laid out (else found out by looking).",
        ),
        click.option("--root", metavar="DIR", help="The sessions root (else as Pi finds it)."),
    ):
        command = option(command)
    return command


def color_option(command: Command) -> Command:
    """--color."""
    return click.option(
        "--color",
        type=click.Choice(["auto", "always", "ansi", "never"]),
        default="auto",
        help="When to use colours (auto: on a terminal, unless NO_COLOR is set).",
    )(command)
