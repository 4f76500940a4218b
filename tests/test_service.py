"""The service of the watcher: what is written, for which host, and what is left alone."""

from __future__ import annotations

import os
import plistlib
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sessionindex.daemon import installer, report
from sessionindex.daemon.service import Service, ServiceError, Watch, agent, service, unit, watch
from sessionindex.settings import Root, find_root

NAMES = [
    "/plain",
    "/with space",
    "/two  spaces, and one at the end ",
    '/double "quotes"',
    "/single 'quotes'",
    "/it's",
    "/back\\slash",
    "/ends with one\\",
    "/\\n is no line break, \\x41 no letter",
    "/%h and %% and 100%",
    "/$HOME",
    "/${HOME}",
    "/$$ and $",
    "/a; b",
    "/; ",
    "/#hash",
    "/~",
    "/<&>]]>",
    "/降水 é",
    "/\u202e right to left",
    "/all of it: \"\\$%'; #",
]


def wanted(name: str = "/sessions", **more: Any) -> Watch:
    fields: dict[str, Any] = {
        "python": "/opt/python3",
        "root": name,
        "layout": None,
        "index_dir": None,
        "environment": (),
    }
    return Watch(**{**fields, **more})


# --- systemd's own reading, from its manual ------------------------------------------------------


def words(line: str) -> list[str]:
    """Words of a line: quotes taken away, C escapes undone, then specifiers."""
    found: list[str] = []
    place = 0
    while place < len(line):
        if line[place] == " ":
            place += 1
            continue
        word, quote = "", ""
        while place < len(line) and (quote or line[place] != " "):
            character = line[place]
            if character == "\\":
                place += 1
                assert line[place] in "\\\"'", "an escape that we do not write"
                word += line[place]
            elif quote and character == quote:
                quote = ""
            elif not quote and character in "\"'":
                quote = character
            else:
                word += character
            place += 1
        assert not quote
        found.append(word)
    return [specified(word) for word in found]


def specified(word: str) -> str:
    assert "%" not in word.replace("%%", ""), "a specifier"
    return word.replace("%%", "%")


def expanded(word: str) -> str:
    """What is done to the words of a command, but not to the environment."""
    assert "$" not in word.replace("$$", ""), "a variable"
    return word.replace("$$", "$")


def lines(text: str, key: str) -> list[str]:
    return re.findall(rf"^{key}=(.*)$", text, re.M)


@pytest.mark.parametrize("name", NAMES)
def test_systemd_reads_back_what_was_meant(name: str) -> None:
    """The same words, and the same environment, whatever they are made of."""
    watched = wanted(name, index_dir=name, layout="flat", environment=(("PI_X", name),))
    text = unit(watched)
    (command,) = lines(text, "ExecStart")
    assert tuple(map(expanded, words(command))) == watched.command
    (variable,) = lines(text, "Environment")
    assert words(variable) == [f"PI_X={name}"]
    (description,) = lines(text, "Description")
    assert name in specified(description)
    assert not [line for line in text.splitlines() if line.endswith("\\")]


@pytest.mark.parametrize("name", NAMES)
def test_launchd_reads_back_what_was_meant(name: str) -> None:
    watched = wanted(name, index_dir=name, environment=(("PI_X", name),))
    text = agent(watched, "sessionindex")
    assert plistlib.loads(text.encode()) == {
        "Label": "sessionindex",
        "ProgramArguments": list(watched.command),
        "EnvironmentVariables": {"PI_X": name},
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ThrottleInterval": 30,
        "ExitTimeOut": 30,
    }


def test_a_unit_says_no_more_than_needed() -> None:
    """Restarted after a failure only, with a pause and a limit; no word of priorities."""
    assert unit(wanted()) == (
        "# made by sessionindex\n"
        "[Unit]\n"
        "Description=Pi sessions of /sessions for sessionindex, as they grow\n"
        "StartLimitIntervalSec=600\n"
        "StartLimitBurst=5\n"
        "\n"
        "[Service]\n"
        "Type=exec\n"
        "ExecStart=/opt/python3 -P -m sessionindex watch --root /sessions\n"
        "Restart=on-failure\n"
        "RestartSec=30\n"
        "KillSignal=SIGTERM\n"
        "TimeoutStopSec=30\n"
        "\n"
        "[Install]\n"
        "WantedBy=default.target\n"
    )


@pytest.mark.parametrize("bad", ["\n", "\r", "\t", "\x1b", "\x7f", "\x85", "\udc80", "\uffff"])
@pytest.mark.parametrize("where", ["root", "index_dir", "python", "environment"])
def test_what_cannot_be_written_is_refused(bad: str, where: str) -> None:
    """Line breaks above all: they would begin a line of their own."""
    name = f"/a{bad}ExecStartPre=b"
    env = {"XDG_CACHE_HOME": name} if where == "environment" else {}
    with pytest.raises(ServiceError, match="a service cannot be made for a name like this"):
        watch(
            Root(name if where == "root" else "/sessions", None, "given"),
            None,
            name if where == "index_dir" else None,
            python=name if where == "python" else "/opt/python3",
            env=env,
            cwd="/",
        )


@pytest.mark.parametrize("python", ['/a"b', "/a'b", "/a\\b", "/a$b"])
def test_a_program_that_systemd_would_not_run_is_refused(python: str) -> None:
    """launchd takes it."""
    with pytest.raises(ServiceError, match="systemd runs no program with a name like this"):
        unit(wanted(python=python))
    assert python in plistlib.loads(agent(wanted(python=python), "x").encode())["ProgramArguments"]


ANALYZE = shutil.which("systemd-analyze")


def verified(text: str, folder: Path) -> str:
    """What systemd-analyze has to say of a unit."""
    (folder / "run").mkdir(mode=0o700)
    path = folder / "sessionindex.service"
    path.write_text(text)
    assert ANALYZE
    done = subprocess.run(
        [ANALYZE, "--user", "verify", str(path)],
        env={**os.environ, "HOME": str(folder), "XDG_RUNTIME_DIR": str(folder / "run")},
        capture_output=True,
        text=True,
        timeout=60,
    )
    if "Failed to initialize manager" in done.stderr:
        pytest.skip(f"systemd-analyze cannot work here: {done.stderr.strip()}")
    return done.stdout + done.stderr


@pytest.mark.skipif(ANALYZE is None, reason="no systemd-analyze here")
def test_systemd_finds_nothing_wrong(tmp_path: Path) -> None:
    variables = tuple((f"V{number}", name) for number, name in enumerate(NAMES))
    text = unit(wanted(NAMES[-1], python=sys.executable, environment=variables))
    assert verified(text, tmp_path) == ""


@pytest.mark.skipif(ANALYZE is None, reason="no systemd-analyze here")
def test_systemd_does_look(tmp_path: Path) -> None:
    """What the test before relies on."""
    text = unit(wanted(python=sys.executable)).replace("Restart=on-failure", "Restart=on-whim")
    assert "on-whim" in verified(text, tmp_path)


# --- what is captured ----------------------------------------------------------------------------


def test_only_what_is_set_is_captured_and_made_absolute() -> None:
    """Relative to where the command was given; an unusable one, as Pi and we ignore it, is not."""
    env = {
        "HOME": "/home/ada",
        "PATH": "/bin",
        "PI_CODING_AGENT_DIR": "pi",
        "PI_CODING_AGENT_SESSION_DIR": "~/talks",
        "SESSIONINDEX_DIR": "../cache",
        "XDG_CACHE_HOME": "relative",
    }
    root = find_root(None, env=env, cwd="/work")
    assert watch(root, None, None, env=env, cwd="/work", python="/opt/python3") == Watch(
        "/opt/python3",
        "/home/ada/talks",
        "flat",
        None,
        (
            ("PI_CODING_AGENT_DIR", "/work/pi"),
            ("PI_CODING_AGENT_SESSION_DIR", "/home/ada/talks"),
            ("SESSIONINDEX_DIR", "/cache"),
        ),
    )
    few = {"HOME": "/home/ada", "XDG_CACHE_HOME": "/var/c", "SESSIONINDEX_DIR": ""}
    assert watch(root, None, None, env=few).environment == (("XDG_CACHE_HOME", "/var/c"),)


@pytest.mark.parametrize(
    ("given", "flat", "kept"),
    [
        (None, None, None),
        (None, True, "flat"),
        (None, False, "projects"),
        ("projects", True, "projects"),
        ("flat", None, "flat"),
    ],
)
def test_the_layout_stays_what_it_is(given: str | None, flat: bool | None, kept: str) -> None:
    """A root named by hand would be looked at; one that a variable names is flat."""
    assert watch(Root("/r", flat, "x"), given, None, env={}).layout == kept


def test_an_index_folder_is_made_absolute() -> None:
    found = watch(Root("/r", None, "x"), None, "here", env={}, cwd="/work")
    assert found.command[-2:] == ("--index-dir", "/work/here")


@pytest.mark.parametrize(
    ("root", "env", "path"),
    [
        ("/home/ada/.pi/agent/sessions", {}, "/home/ada/.config/systemd/user/sessionindex.service"),
        (
            "/home/ada/.pi/agent/sessions",
            {"XDG_CONFIG_HOME": "/etc/ada", "PI_CODING_AGENT_DIR": "/elsewhere"},
            "/etc/ada/systemd/user/sessionindex.service",
        ),
        (
            "/elsewhere/sessions",
            {"XDG_CONFIG_HOME": "relative", "PI_CODING_AGENT_DIR": "/elsewhere"},
            "/home/ada/.config/systemd/user/sessionindex-85e1637e.service",
        ),
    ],
)
def test_a_service_is_named_by_its_root(root: str, env: dict[str, str], path: str) -> None:
    """However the root was named."""
    made = service(wanted(root), env={"HOME": "/home/ada", **env}, platform="linux")
    assert made.path == path
    assert made.name == os.path.basename(path)


def test_launchd_has_its_own_place() -> None:
    made = service(wanted("/r"), env={"HOME": "/Users/ada"}, platform="darwin", uid=501)
    assert re.fullmatch(r"sessionindex-[0-9a-f]{8}", made.name)
    assert made.path == f"/Users/ada/Library/LaunchAgents/{made.name}.plist"
    assert [step.command for step in made.start] == [
        ("launchctl", "bootout", f"gui/501/{made.name}"),
        ("launchctl", "enable", f"gui/501/{made.name}"),
        ("launchctl", "bootstrap", "gui/501", made.path),
    ]


# --- carried out ---------------------------------------------------------------------------------


def made(home: Path, platform: str = "linux", **more: Any) -> Service:
    return service(wanted(**more), env={"HOME": str(home)}, platform=platform, uid=501)


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that holds each call of the host's commands, which all succeed."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("systemctl", "launchctl", "loginctl"):
        fake = folder / name
        fake.write_text(f'#!/bin/sh\necho "{name} $*" >> "{tmp_path}/calls"\n')
        fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    (tmp_path / "calls").touch()
    return tmp_path / "calls"


@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_twice_is_once(platform: str, host: Path, tmp_path: Path) -> None:
    """Private, whole, and nothing beside it; then gone, and again gone."""
    one = made(tmp_path, platform)
    path = Path(one.path)
    assert installer.install(one) == installer.Outcome("none")
    assert installer.install(one) == installer.Outcome("same")
    assert path.read_text() == one.text
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(path.parent) == [path.name]
    assert installer.uninstall(one) == installer.Outcome("same")
    assert installer.uninstall(one) == installer.Outcome("none")
    assert not path.exists()


def test_launchctl_is_called_in_order(host: Path, tmp_path: Path) -> None:
    one = made(tmp_path, "darwin")
    installer.install(one)
    installer.uninstall(one)
    target = f"gui/501/{one.name}"
    assert host.read_text().splitlines() == [
        f"launchctl bootout {target}",
        f"launchctl enable {target}",
        f"launchctl bootstrap gui/501 {one.path}",
        f"launchctl bootout {target}",
    ]


def test_an_agent_that_was_stopped_by_hand_is_removed(host: Path, tmp_path: Path) -> None:
    """There is nothing to stop then, which launchctl calls a failure."""
    one = made(tmp_path, "darwin")
    installer.install(one)
    (host.parent / "bin" / "launchctl").write_text("#!/bin/sh\nexit 3\n")
    assert installer.uninstall(one) == installer.Outcome("same")
    assert not os.path.exists(one.path)


def test_other_options_replace_the_unit_and_restart_it(host: Path, tmp_path: Path) -> None:
    """The one that runs has the old ones."""
    installer.install(made(tmp_path))
    host.write_text("")
    other = made(tmp_path, layout="flat")
    assert installer.install(other).before == "other"
    assert Path(other.path).read_text() == other.text
    assert host.read_text().splitlines() == [
        "systemctl --user daemon-reload",
        f"systemctl --user reset-failed {other.name}",
        f"systemctl --user enable {other.name}",
        f"systemctl --user restart {other.name}",
    ]


@pytest.mark.parametrize("platform", ["linux", "darwin"])
@pytest.mark.parametrize(
    "foreign", ["[Unit]\n", "", "\n# made by sessionindex\n", "link", "dangling", "folder", "pipe"]
)
def test_what_is_not_ours_is_left_alone(
    foreign: str, platform: str, host: Path, tmp_path: Path
) -> None:
    one = made(tmp_path, platform)
    path = Path(one.path)
    path.parent.mkdir(parents=True)
    ours = tmp_path / "ours"
    ours.write_text(one.text)
    if foreign == "link":
        path.symlink_to(ours)
    elif foreign == "dangling":
        path.symlink_to("/no/where")
    elif foreign == "folder":
        path.mkdir()
    elif foreign == "pipe":
        os.mkfifo(path)
    else:
        path.write_text(foreign)
    before = path.lstat()
    for act in (installer.install, installer.uninstall):
        with pytest.raises(ServiceError) as refused:
            act(one)
        assert str(refused.value) == f"not made by sessionindex, left alone: {path}"
    after = path.lstat()
    assert (before.st_ino, before.st_size, before.st_mtime_ns) == (
        after.st_ino,
        after.st_size,
        after.st_mtime_ns,
    )
    assert ours.read_text() == one.text
    assert host.read_text() == ""


def test_a_folder_that_cannot_be_made_is_said(host: Path, tmp_path: Path) -> None:
    (tmp_path / ".config").write_text("a file")
    with pytest.raises(ServiceError, match=r"cannot write .*: E(NOTDIR|EXIST): "):
        installer.install(made(tmp_path))


def test_a_host_that_fails_leaves_a_file_and_the_rest_to_do(host: Path, tmp_path: Path) -> None:
    """Its own first words are the reason; what may fail is not told."""
    fake = host.parent / "bin" / "systemctl"
    fake.write_text('#!/bin/sh\necho "Failed to connect to bus: No medium found" >&2\nexit 1\n')
    one = made(tmp_path)
    done = installer.install(one)
    assert done == installer.Outcome(
        "none",
        "systemctl failed: Failed to connect to bus: No medium found",
        False,
        (
            ("systemctl", "--user", "daemon-reload"),
            ("systemctl", "--user", "enable", "--now", one.name),
        ),
    )
    assert Path(one.path).read_text() == one.text
    link = Path(one.link or "")
    link.parent.mkdir()
    link.symlink_to(one.path)
    done = installer.uninstall(one)
    assert done.left == (
        ("systemctl", "--user", "stop", one.name),
        ("systemctl", "--user", "daemon-reload"),
    )
    assert not os.path.lexists(one.path) and not os.path.lexists(link)


def test_a_host_without_the_command_has_nothing_to_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    one = made(tmp_path)
    done = installer.install(one)
    assert (done.failure, done.missing, len(done.left)) == ("there is no systemctl here", True, 2)
    assert installer.uninstall(one) == installer.Outcome("same", "there is no systemctl here", True)
    assert installer.lingers() is None
    assert not os.path.exists(one.path)


@pytest.mark.parametrize(
    ("said", "status", "known"),
    [("Linger=yes", 0, True), ("Linger=no", 0, False), ("", 0, None), ("Linger=no", 1, None)],
)
def test_lingering_is_asked_of_loginctl(
    said: str, status: int, known: bool | None, host: Path
) -> None:
    (host.parent / "bin" / "loginctl").write_text(f"#!/bin/sh\necho {said}\nexit {status}\n")
    assert installer.lingers() is known


# --- what the watcher notes ----------------------------------------------------------------------


def test_a_note_is_read_back(tmp_path: Path) -> None:
    """Private; what is well already is not written again."""
    folder, path = str(tmp_path), tmp_path / report.NAME
    report.note(folder, None)
    assert not path.exists() and report.read(folder) is None
    report.note(folder, "no space left")
    noted = report.read(folder)
    assert noted and noted.error == "no space left" and noted.at > 1_700_000_000_000
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    report.note(folder, None)
    well = report.read(folder)
    assert well and well.error is None
    inode = path.stat().st_ino
    report.note(folder, None)
    assert path.stat().st_ino == inode and os.listdir(folder) == [report.NAME]


def test_a_note_that_cannot_be_written_is_lost(tmp_path: Path) -> None:
    report.note(str(tmp_path / "gone"), "trouble")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b"7",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"error": "x"}',
        b'{"error": 7, "at": 1}',
        b'{"error": "x", "at": "now"}',
        b'{"error": "x", "at": true}',
        b'{"error": "x", "at": -1}',
        b'{"error": "x", "at": 1e300}',
        b'{"error": "x", "at": 99999999999999999999999}',
    ],
)
def test_a_garbled_note_says_nothing(data: bytes, tmp_path: Path) -> None:
    """And the next one replaces it."""
    (tmp_path / report.NAME).write_bytes(data)
    assert report.read(str(tmp_path)) is None
    report.note(str(tmp_path), "trouble")
    noted = report.read(str(tmp_path))
    assert noted and noted.error == "trouble"
