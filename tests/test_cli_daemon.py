"""`sessionindex daemon`: what it prints, what it calls, what it leaves alone; how it ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from build import append, session
from scratch import Store
from terminal import Ran, environment, pipe

from sessionindex.daemon import report
from sessionindex.index.store import LOCK

pytestmark = pytest.mark.skipif(sys.platform == "darwin", reason="the host here is systemd")


class Host:
    """A home, and commands of the host that only write down how they were called."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.home.mkdir()
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.calls = folder / "calls"
        self.has("systemctl")
        self.has("loginctl", "echo Linger=yes")

    def has(self, name: str, then: str = "") -> None:
        fake = self.bin / name
        fake.write_text(f'#!/bin/sh\necho "{name} $*" >> "{self.calls}"\n{then}\n')
        fake.chmod(0o755)

    def run(self, *arguments: str, **more: str) -> Ran:
        """A command of which the host has nothing but these commands."""
        env = {**environment(self.home, **more), "PATH": str(self.bin)}
        return pipe(["daemon", *arguments], env)

    def called(self) -> list[str]:
        """The calls since the last time."""
        found = self.calls.read_text().splitlines() if self.calls.exists() else []
        self.calls.unlink(missing_ok=True)
        return found

    @property
    def unit(self) -> Path:
        return self.home / ".config" / "systemd" / "user" / "sessionindex.service"

    def files(self) -> list[str]:
        return sorted(str(path) for path in self.home.rglob("*"))


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def test_install_and_uninstall(host: Host) -> None:
    """Written, made known, started; taken away again; each twice."""
    ran = host.run("install")
    assert ran == Ran(0, f"{host.unit}: written\nsessionindex.service is enabled and started\n", "")
    assert host.called() == [
        "systemctl --user daemon-reload",
        "systemctl --user enable --now sessionindex.service",
        f"loginctl show-user {os.getuid()} --property=Linger",
    ]
    text = host.unit.read_text()
    assert text.startswith("# made by sessionindex\n")
    root = host.home / ".pi" / "agent" / "sessions"
    command = f"{sys.executable} -P -m sessionindex watch --root {root} --layout projects"
    assert f"ExecStart={command}\n" in text
    assert f"Environment=SESSIONINDEX_DIR={host.home}/index\n" in text

    again = host.run("install")
    assert (again.status, again.out.split("\n")[0]) == (0, f"{host.unit}: there already")
    assert host.unit.read_text() == text
    host.called()

    assert host.run("uninstall") == Ran(0, f"{host.unit}: removed\n", "")
    assert host.called() == [
        "systemctl --user disable --now sessionindex.service",
        "systemctl --user daemon-reload",
    ]
    gone = host.run("uninstall")
    assert (gone.status, gone.out) == (0, "")
    assert gone.err == f"sessionindex: nothing to remove: {host.unit} does not exist\n"
    assert host.called() == []


def test_the_unit_starts_a_command_that_there_is(host: Host) -> None:
    """The options are those that `watch` takes, and the module is found without a folder."""
    host.run("install")
    (line,) = [one for one in host.unit.read_text().splitlines() if one.startswith("ExecStart=")]
    command = line.removeprefix("ExecStart=").split(" ")
    done = subprocess.run(
        [*command, "--help"], cwd="/", env={"HOME": str(host.home)}, capture_output=True
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"--every" in done.stdout


def test_a_dry_run_touches_nothing(host: Host) -> None:
    """The unit on stdout, as it would be written; what would be done on stderr."""
    before = host.files()
    ran = host.run("install", "--dry-run")
    assert ran.status == 0
    assert host.files() == before and host.called() == []
    assert ran.err == (
        f"sessionindex: would write: {host.unit}\n"
        "sessionindex: would run:\n"
        "  systemctl --user daemon-reload\n"
        "  systemctl --user enable --now sessionindex.service\n"
    )
    host.run("install")
    assert host.unit.read_text() == ran.out
    host.called()
    ran = host.run("install", "--dry-run")
    assert f"would leave as it is: {host.unit}\n" in ran.err and host.called() == []


def test_each_root_has_its_own(host: Host, store: Store) -> None:
    """Named by the checksum that its index folder has, too."""
    assert host.run("install", "--root", str(store.root)).status == 0
    suffix = store.folder.name.rsplit("-", 1)[1]
    other = host.unit.with_name(f"sessionindex-{suffix}.service")
    assert other.exists() and not host.unit.exists()
    assert host.run("uninstall").out == ""
    assert host.run("uninstall", "--root", str(store.root)).out == f"{other}: removed\n"


def test_lingering_is_hinted_at_where_it_is_off(host: Host) -> None:
    host.has("loginctl", "echo Linger=no")
    assert "loginctl enable-linger" in host.run("install").err
    (host.bin / "loginctl").unlink()
    assert host.run("install").err == ""


@pytest.mark.parametrize("missing", [True, False])
def test_without_systemd_the_commands_are_told(missing: bool, host: Host) -> None:
    """The unit stays, for whoever runs them later."""
    if missing:
        (host.bin / "systemctl").unlink()
        reason = "there is no systemctl here"
    else:
        host.has("systemctl", "echo 'Failed to connect to bus: No medium found' >&2; exit 1")
        reason = "systemctl failed: Failed to connect to bus: No medium found"
    ran = host.run("install")
    assert (ran.status, ran.out) == (2, f"{host.unit}: written\n")
    assert ran.err == (
        f"sessionindex: {reason}; what is left to do:\n"
        "  systemctl --user daemon-reload\n"
        "  systemctl --user enable --now sessionindex.service\n"
    )
    assert host.unit.exists()
    ran = host.run("uninstall")
    assert (ran.status, ran.out) == (0 if missing else 2, f"{host.unit}: removed\n")
    assert ran.err.startswith(f"sessionindex: {reason}")
    assert ("systemctl --user stop" in ran.err) is not missing
    assert not host.unit.exists()


def test_a_unit_of_somebody_else_is_left_alone(host: Host) -> None:
    host.unit.parent.mkdir(parents=True)
    host.unit.write_text("[Service]\nExecStart=/bin/true\n")
    for arguments in (["install"], ["install", "--dry-run"], ["uninstall"]):
        expected = f"sessionindex: not made by sessionindex, left alone: {host.unit}\n"
        assert host.run(*arguments) == Ran(2, "", expected)
    assert host.unit.read_text() == "[Service]\nExecStart=/bin/true\n"
    assert host.called() == []
    assert "(not ours, or not readable)" in host.run("status").out


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["instal"],
        ["install", "--root", "/a\nExecStartPre=/bin/true"],
        ["install", "--root", "/a\x1b[31m"],
        ["install", "--no-such-option"],
        ["status", "--layout", "round"],
    ],
)
def test_errors_are_said_in_words(arguments: list[str], host: Host) -> None:
    """Status 2, nothing on stdout, nothing that a terminal would obey, nothing done."""
    before = host.files()
    ran = host.run(*arguments)
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.startswith("sessionindex: ")
    assert "Traceback" not in ran.err and "\x1b" not in ran.err
    assert host.files() == before and host.called() == []


def test_a_home_that_cannot_be_written_is_said(host: Host) -> None:
    (host.home / ".config").write_text("a file")
    ran = host.run("install")
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.startswith(f"sessionindex: cannot write {host.unit}: E")


# --- status --------------------------------------------------------------------------------------


@contextmanager
def holder(folder: Path, kind: str) -> Iterator[int]:
    """A process that holds the writer lock; its id."""
    child = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys\n"
            "from sessionindex.index.lock import take\n"
            "take(*sys.argv[1:])\n"
            "print(flush=True)\n"
            "sys.stdin.read()\n",
            str(folder / LOCK),
            kind,
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert child.stdin and child.stdout
    try:
        assert child.stdout.readline() == b"\n"
        yield child.pid
    finally:
        child.stdin.close()
        child.stdout.close()
        child.wait(timeout=60)


def asked(host: Host, store: Store, *arguments: str) -> Ran:
    where = ["--root", str(store.root), "--index-dir", str(store.index_dir)]
    return host.run("status", *arguments, *where)


def test_status_of_a_watcher_that_runs(host: Host, store: Store) -> None:
    """Who, since when, what is not read yet; 0."""
    path = store.put("a", session("a").user("needle"))
    store.index.refresh()
    append(path, session("a").user("more").bytes())
    store.put("b", session("b").user("new"))
    with holder(store.folder, "watch") as pid:
        ran = asked(host, store, "--json")
        shown = asked(host, store)
    answer = json.loads(ran.out)
    assert (ran.status, ran.err) == (0, "")
    assert list(answer) == [
        "root",
        "layout",
        "indexDir",
        "running",
        "pid",
        "since",
        "lastBatch",
        "behind",
        "stale",
        "new",
        "pendingBytes",
        "lastError",
        "unit",
        "damage",
    ]
    assert (answer["running"], answer["pid"], answer["lastError"]) == (True, pid, None)
    assert (answer["behind"], answer["stale"], answer["new"]) == (1, 0, 1)
    assert answer["pendingBytes"] > 0
    assert answer["since"].endswith("Z") and answer["lastBatch"].endswith("Z")
    assert answer["unit"]["installed"] is False
    assert shown.status == 0
    assert f"watcher  process {pid}, since 20" in shown.out
    assert "to read  1 files grown, 0 rewritten, 1 new" in shown.out


def test_status_without_a_watcher(host: Host, store: Store) -> None:
    """1, and where to look for what it said, if it should run."""
    store.put("a", session("a").user("needle"))
    ran = asked(host, store)
    assert (ran.status, ran.err) == (1, "")
    assert "watcher  not running\n" in ran.out
    assert ".service (not installed)\n" in ran.out
    assert "last batch  never\n" in ran.out and "last error  none\n" in ran.out
    host.run("install", "--root", str(store.root))
    ran = asked(host, store)
    assert ran.status == 1 and ".service (installed)\n" in ran.out
    assert "journalctl --user-unit=sessionindex-" in ran.err
    answer = json.loads(asked(host, store, "--json").out)
    assert (answer["running"], answer["pid"], answer["since"]) == (False, None, None)
    assert (answer["lastBatch"], answer["unit"]["installed"]) == (None, True)


def test_another_writer_is_no_watcher(host: Host, store: Store) -> None:
    store.put("a", session("a").user("needle"))
    store.index.refresh()
    with holder(store.folder, "refresh") as pid:
        ran = asked(host, store)
    assert ran.status == 1
    assert f"not running (process {pid} (refresh) is writing)" in ran.out


def test_status_tells_the_last_error(host: Host, store: Store) -> None:
    """Harmless, until it is taken back."""
    store.put("a", session("a").user("needle"))
    store.index.refresh()
    report.note(str(store.folder), "no space left\x1b[31m\non the disk")
    ran = asked(host, store)
    assert ": no space left␛[31m␊on the disk\n" in ran.out
    answer = json.loads(asked(host, store, "--json").out)
    assert answer["lastError"]["error"] == "no space left\x1b[31m\non the disk"
    assert answer["lastError"]["at"].startswith("20")
    report.note(str(store.folder), None)
    assert "last error  none\n" in asked(host, store).out


def test_a_root_may_come_later(host: Host) -> None:
    """The watcher waits for it, so neither its status nor its service needs it."""
    ran = host.run("status", "--root", "/no/such/root")
    assert ran.status == 1 and "Traceback" not in ran.err
    assert host.run("install", "--root", "/no/such/root").status == 0


def test_status_of_a_root_no_service_can_be_made_for(host: Host, tmp_path: Path) -> None:
    """A watcher by hand can still be asked about."""
    root = tmp_path / "a\tb"
    root.mkdir()
    ran = host.run("status", "--root", str(root))
    assert ran.status == 1
    assert "a service cannot be made for a name like this" in ran.out


def test_a_watcher_by_hand_is_told_of(host: Host, store: Store) -> None:
    """The service would find the lock taken and end."""
    store.put("a", session("a").user("needle"))
    store.index.refresh()
    where = ["--root", str(store.root), "--index-dir", str(store.index_dir)]
    with holder(store.folder, "watch") as pid:
        ran = host.run("install", *where)
        again = host.run("install", *where)
    assert ran.status == 0
    assert f"process {pid} (watch) watched before, so the service ends at once" in ran.err
    assert "  systemctl --user restart sessionindex-" in ran.err
    assert again.err == ""
