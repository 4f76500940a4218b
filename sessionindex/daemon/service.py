"""The watcher as a service of the host: the text of a systemd user unit or of a launchd agent.

Goal: decide everything and touch nothing. A Service is where its file belongs, what is in it, and
the commands that start and stop it; `installer` carries that out, `--dry-run` prints it.

Rules:

- One service for a root, named by the root: the default one has no suffix, any other the checksum
  that its index folder has too. How the root was named does not matter.
- Paths are absolute. The program is this Python; no shell is between, nothing is looked up in
  PATH, and no module is taken from the folder in which it happens to run (`-P`).
- Of the environment, what decides where things are is written down, where it is set.
- Restarted after a failure only, after a pause, and not for ever. Priorities are left alone.
- What cannot be written (control characters, line breaks) is refused, never changed. systemd wants
  the program without quotes, backslashes and dollar signs.
"""

from __future__ import annotations

import os
import plistlib
import re
import sys
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sessionindex import settings
from sessionindex.errors import SessionIndexError
from sessionindex.settings import Root

PAUSE: Final = 30
"""Seconds before a watcher that failed is started again."""

_MARK: Final = "made by sessionindex"
_UNIT_HEAD: Final = f"# {_MARK}\n"
_XML_HEAD: Final = '<?xml version="1.0" encoding="UTF-8"?>\n'
_AGENT_HEAD: Final = f"{_XML_HEAD}<!-- {_MARK} -->\n"
_STARTS: Final = 5
_STARTS_WITHIN: Final = 600
_STOP: Final = 30
# C0, DEL, C1; what is no UTF-8, and what no XML may hold.
_UNWRITABLE: Final = re.compile("[\0-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_NO_PROGRAM: Final = re.compile(r"""["'\\$]""")


class ServiceError(SessionIndexError):
    """The service cannot be described, or its file not be made or removed."""


@dataclass(frozen=True, slots=True)
class Watch:
    """What the service runs: the watcher of one root, with its surroundings."""

    python: str
    root: str
    layout: str | None
    index_dir: str | None
    environment: tuple[tuple[str, str], ...]

    @property
    def command(self) -> tuple[str, ...]:
        return (
            *(self.python, "-P", "-m", "sessionindex", "watch", "--root", self.root),
            *(("--layout", self.layout) if self.layout else ()),
            *(("--index-dir", self.index_dir) if self.index_dir else ()),
        )


@dataclass(frozen=True, slots=True)
class Step:
    """A command of the host's; `tolerated`: it may fail, `attempts`: how often it is tried."""

    command: tuple[str, ...]
    tolerated: bool = False
    attempts: int = 1


@dataclass(frozen=True, slots=True)
class Service:
    """A service: its file, and the steps that make the host know it, know it anew, forget it.

    `stop` is done before the file is removed and `forget` after; `halt` is what is left to do
    where the host did not answer and the file is gone already. `link` is where the host notes that
    the service is enabled; `again` starts it once more, `log` shows what the watcher said.
    """

    name: str
    path: str
    text: str
    start: tuple[Step, ...]
    restart: tuple[Step, ...]
    stop: tuple[Step, ...]
    forget: tuple[Step, ...]
    halt: tuple[Step, ...]
    again: tuple[str, ...]
    log: tuple[str, ...]
    link: str | None = None


def is_ours(text: str) -> bool:
    """Whether a unit or an agent was made by this program."""
    return text.startswith((_UNIT_HEAD, _AGENT_HEAD))


def watch(
    root: Root,
    layout: str | None,
    index_dir: str | None,
    *,
    python: str | None = None,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
) -> Watch:
    """The watcher that sees what a command with these options and surroundings sees.

    Raises ServiceError where that cannot be written down.
    """
    env = os.environ if env is None else env
    if layout is None and root.flat is not None:
        layout = "flat" if root.flat else "projects"  # a root by hand would be looked at instead
    found = Watch(
        os.path.abspath(sys.executable or "") if python is None else python,
        root.path,
        layout,
        settings.index_home(index_dir, env=env, cwd=cwd) if index_dir else None,
        tuple(settings.surroundings(env, cwd=cwd).items()),
    )
    for text in (*found.command, *(value for _, value in found.environment)):
        if _UNWRITABLE.search(text):
            raise ServiceError(f"a service cannot be made for a name like this: {text}")
    if not sys.executable and python is None:
        raise ServiceError("a service needs to know where Python is, and it does not say")
    return found


def service(
    wanted: Watch,
    *,
    env: Mapping[str, str] | None = None,
    platform: str | None = None,
    uid: int | None = None,
) -> Service:
    """The service for this host: launchd on macOS, else systemd. Raises ServiceError."""
    env = os.environ if env is None else env
    home = env.get("HOME") or os.path.expanduser("~")
    suffix = _suffix(wanted.root, home)
    if (platform or sys.platform) == "darwin":
        return _launchd(wanted, f"sessionindex{suffix}", home, os.getuid() if uid is None else uid)
    config = env.get("XDG_CONFIG_HOME", "")
    base = config if os.path.isabs(config) else os.path.join(home, ".config")
    return _systemd(wanted, f"sessionindex{suffix}.service", os.path.join(base, "systemd", "user"))


def _suffix(root: str, home: str) -> str:
    default = os.path.join(settings.agent_dir({"HOME": home}, cwd="/"), "sessions")
    real = os.path.realpath(root)
    if real == os.path.realpath(default):
        return ""
    return f"-{zlib.crc32(os.fsencode(real)):08x}"


# --- systemd -------------------------------------------------------------------------------------


def _systemd(wanted: Watch, name: str, folder: str) -> Service:
    reload = Step(("systemctl", "--user", "daemon-reload"))
    again = ("systemctl", "--user", "restart", name)
    path = os.path.join(folder, name)
    return Service(
        name,
        path,
        unit(wanted),
        start=(reload, Step(("systemctl", "--user", "enable", "--now", name))),
        restart=(
            reload,
            Step(("systemctl", "--user", "reset-failed", name), tolerated=True),
            Step(("systemctl", "--user", "enable", name)),
            Step(again),  # the one that runs has the old options, or an old version
        ),
        stop=(Step(("systemctl", "--user", "disable", "--now", name)),),
        forget=(reload,),
        halt=(Step(("systemctl", "--user", "stop", name)), reload),
        again=again,
        log=("journalctl", f"--user-unit={name}"),
        link=os.path.join(folder, "default.target.wants", name),
    )


def unit(wanted: Watch) -> str:
    """The text of a systemd user unit; raises ServiceError where systemd refuses the program."""
    if _NO_PROGRAM.search(wanted.python):
        raise ServiceError(f"systemd runs no program with a name like this: {wanted.python}")
    variables = [f"Environment={_quoted(f'{name}={v}')}\n" for name, v in wanted.environment]
    return (
        f"{_UNIT_HEAD}"
        "[Unit]\n"
        f"Description=Pi sessions of {_literal(wanted.root)} for sessionindex, as they grow\n"
        f"StartLimitIntervalSec={_STARTS_WITHIN}\n"
        f"StartLimitBurst={_STARTS}\n"
        "\n"
        "[Service]\n"
        "Type=exec\n"
        f"{''.join(variables)}"
        f"ExecStart={_command_line(wanted.command)}\n"
        "Restart=on-failure\n"
        f"RestartSec={PAUSE}\n"
        "KillSignal=SIGTERM\n"
        f"TimeoutStopSec={_STOP}\n"
        "\n"
        "[Install]\n"
        "WantedBy=default.target\n"
    )


def _command_line(command: Sequence[str]) -> str:
    """Words of which systemd makes the same words again, without variables or specifiers."""
    return " ".join(_quoted(word).replace("$", "$$") for word in command)


def _quoted(word: str) -> str:
    """One word; a dollar sign means itself, as it does in Environment= only."""
    if word and re.fullmatch(r"[A-Za-z0-9_/.=+:,@-]+", word):
        return word
    escaped = _literal(word).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _literal(text: str) -> str:
    return text.replace("%", "%%")


# --- launchd -------------------------------------------------------------------------------------


def _launchd(wanted: Watch, label: str, home: str, uid: int) -> Service:
    path = os.path.join(home, "Library", "LaunchAgents", f"{label}.plist")
    target = f"gui/{uid}/{label}"
    # It fails, too, where there is nothing to stop.
    out = Step(("launchctl", "bootout", target), tolerated=True)
    # For a moment after `bootout` the old one is still there.
    load = Step(("launchctl", "bootstrap", f"gui/{uid}", path), attempts=3)
    enable = Step(("launchctl", "enable", target))
    begin = (out, enable, load)
    return Service(
        label,
        path,
        agent(wanted, label),
        start=begin,
        restart=begin,
        stop=(out,),
        forget=(),
        halt=(),
        again=("launchctl", "kickstart", "-k", target),
        log=("launchctl", "print", target),
    )


def agent(wanted: Watch, label: str) -> str:
    """The text of a launchd agent."""
    keys = {
        "Label": label,
        "ProgramArguments": list(wanted.command),
        "EnvironmentVariables": dict(wanted.environment),
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ThrottleInterval": PAUSE,
        "ExitTimeOut": _STOP,
    }
    text = plistlib.dumps(keys, sort_keys=False).decode("utf-8")
    return _AGENT_HEAD + text.removeprefix(_XML_HEAD)
