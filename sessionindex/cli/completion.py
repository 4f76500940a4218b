"""`sessionindex completion`: the script that makes a shell complete our commands and options."""

from __future__ import annotations

import sys

import click
from click.shell_completion import get_completion_class

_NAME = "sessionindex"
_EXAMPLES = """\b
Examples:
  eval "$(sessionindex completion bash)"                    in ~/.bashrc
  eval "$(sessionindex completion zsh)"                     in ~/.zshrc
  sessionindex completion fish > ~/.config/fish/completions/sessionindex.fish
"""


@click.command(epilog=_EXAMPLES, short_help="Completion for bash, zsh or fish.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(context: click.Context, shell: str) -> int:
    """Print what SHELL needs to complete commands, options and their values."""
    completer = get_completion_class(shell)
    assert completer is not None  # click has these three
    root = context.find_root().command
    sys.stdout.write(completer(root, {}, _NAME, f"_{_NAME.upper()}_COMPLETE").source() + "\n")
    return 0
