"""Settings, trust, sessions root, index folder, current session: tables over a made-up home."""

import json
import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from sessionindex import settings
from sessionindex.access import Policy
from sessionindex.errors import PolicyError

BAR = {"piRetrospect": {"allowedProjects": ["bar"]}}
BAZ = {"piRetrospect": {"allowedProjects": ["baz"]}}


@dataclass(frozen=True)
class Desk:
    """A home with Pi's folder, and a project in it; `env` never holds the real HOME."""

    home: Path
    project: Path
    env: dict[str, str]

    def user(self, value: object) -> None:
        write(self.home / ".pi/agent/settings.json", value)

    def own(self, value: object) -> None:
        write(self.project / ".pi/settings.json", value)

    def trust(self, value: object) -> None:
        write(self.home / ".pi/agent/trust.json", value)

    def read(self) -> settings.Settings:
        return settings.read(env=self.env, cwd=str(self.project))

    def root(self, given: str | None = None, **env: str) -> settings.Root:
        return settings.find_root(given, env=self.env | env, cwd=str(self.project))

    def trusted(self) -> bool:
        return settings.project_trusted(env=self.env, cwd=str(self.project))


def write(path: Path, value: object) -> None:
    """bytes and str as they are, everything else as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(value, bytes):
        path.write_bytes(value)
    else:
        path.write_text(value if isinstance(value, str) else json.dumps(value), "utf-8")


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    home = Path(os.path.realpath(tmp_path)) / "home"
    project = home / "src" / "proj"
    project.mkdir(parents=True)
    return Desk(home, project, {"HOME": str(home)})


# --- files -> effective settings


def test_given_settings_are_used_as_they_are(desk: Desk) -> None:
    """What the caller passes replaces the files, an empty dict too."""
    desk.user(BAR)
    assert settings.read(BAZ, env=desk.env).policy() == Policy(("baz",))
    assert settings.read({}, env=desk.env).policy() == Policy(None)


@pytest.mark.parametrize("given", [[], "bar", 5, False])
def test_given_settings_that_are_no_object(given: object) -> None:
    """They are the policy error, not an empty policy."""
    unread = settings.read(given, env={})
    assert unread.effective is None
    with pytest.raises(PolicyError):
        unread.policy()


def test_no_files_no_bound(desk: Desk) -> None:
    """Missing files hold nothing."""
    assert desk.read() == settings.Settings({})
    assert desk.read().policy() == Policy(None)


def test_settings_are_read_anew(desk: Desk) -> None:
    """An edit counts at the next call."""
    desk.user(BAR)
    assert desk.read().policy() == Policy(("bar",))
    desk.user(BAZ)
    assert desk.read().policy() == Policy(("baz",))


def test_values_are_frozen(desk: Desk) -> None:
    """One reading does not change under the call that made it."""
    with pytest.raises(AttributeError):
        desk.read().effective = None  # type: ignore[misc]


PARSED = [
    ("plain", b'{"a": 1}', {"a": 1}),
    ("a BOM", b'\xef\xbb\xbf{"a": 1}', {"a": 1}),
    ("invalid UTF-8 becomes U+FFFD", b'{"a": "\xff"}', {"a": "�"}),
    ("a lone surrogate escape", rb'{"a": "\ud800"}', {"a": "\ud800"}),
    ("the last of equal keys", b'{"a": 1, "a": 2}', {"a": 2}),
    ("a list holds nothing", b'[{"a": 1}]', {}),
    ("null holds nothing", b"null", {}),
    ("a number holds nothing", b"5", {}),
]

BROKEN = [
    ("empty", b""),
    ("blank", b" \n"),
    ("only a BOM", b"\xef\xbb\xbf"),
    ("two BOMs", b"\xef\xbb\xbf\xef\xbb\xbf{}"),
    ("torn", b'{"a": '),
    ("a comment", b"{} // none"),
    ("a trailing comma", b'{"a": 1,}'),
    ("NaN", b'{"a": NaN}'),
    ("Infinity", b'{"a": -Infinity}'),
    ("nested without end", b"[" * 200_000),
]


@pytest.mark.parametrize(("what", "raw", "expected"), PARSED, ids=[row[0] for row in PARSED])
def test_parsed_file(desk: Desk, what: str, raw: bytes, expected: object) -> None:
    """What Pi reads out of a user's file."""
    desk.user(raw)
    assert desk.read().effective == expected, what


@pytest.mark.parametrize(("what", "raw"), BROKEN, ids=[row[0] for row in BROKEN])
def test_broken_file(desk: Desk, what: str, raw: bytes) -> None:
    """A file that cannot be parsed is the policy error: the user's, and a trusted project's."""
    desk.user(raw)
    with pytest.raises(PolicyError):
        desk.read().policy()
    desk.user({"defaultProjectTrust": "always"})
    desk.own(raw)
    assert desk.read().effective is None, what
    desk.user(BAR)  # now the project is untrusted: its file says nothing
    assert desk.read().policy() == Policy(("bar",)), what


def test_file_that_cannot_be_read(desk: Desk) -> None:
    """A folder or a device in its place is broken, not missing, and nothing waits for it."""
    file = desk.home / ".pi/agent/settings.json"
    file.mkdir(parents=True)
    assert desk.read().effective is None
    file.rmdir()
    os.mkfifo(file)
    assert desk.read().effective is None
    file.unlink()
    file.symlink_to(file)
    assert desk.read().effective is None


def test_a_linked_settings_file_is_read(desk: Desk) -> None:
    """People keep their settings elsewhere and link them; a link to nothing is a missing file."""
    write(desk.home / "dotfiles/pi.json", BAR)
    file = desk.home / ".pi/agent/settings.json"
    file.parent.mkdir(parents=True)
    file.symlink_to(desk.home / "dotfiles/pi.json")
    assert desk.read().policy() == Policy(("bar",))
    (desk.home / "dotfiles/pi.json").unlink()
    assert desk.read().effective == {}


def test_a_path_through_a_file_is_missing(desk: Desk) -> None:
    """`.pi` may be a plain file."""
    (desk.project / ".pi").write_text("")
    assert desk.read().effective == {}


@pytest.mark.parametrize("path", ["/a\0b", "/a\ud800b", "~/\0", "x" * 5000])
def test_impossible_paths_do_not_crash(desk: Desk, path: str) -> None:
    """No file can have such a name; the answer is a value or a refusal."""
    env = desk.env | {"PI_CODING_AGENT_DIR": path}
    assert settings.read(env=env, cwd=str(desk.project)).effective is None
    assert settings.find_root(None, env=env, cwd=path).source == "PI_CODING_AGENT_DIR"
    assert settings.project_trusted(env={"HOME": path}, cwd=path) in (True, False)
    assert settings.read(env={"HOME": path}, cwd=path).effective is None
    assert settings.current_session(path, env=desk.env, cwd="/")
    assert settings.index_home(path, env=desk.env, cwd="/")


# --- merge

MERGED = [
    ("a missing key keeps the user's", {"a": 1}, {}, {"a": 1}),
    ("a new key is added", {"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
    ("a value is replaced", {"a": 1}, {"a": 2}, {"a": 2}),
    ("null replaces", {"a": {"b": 1}}, {"a": None}, {"a": None}),
    ("lists are replaced", {"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
    ("an object replaces a value", {"a": 1}, {"a": {"b": 1}}, {"a": {"b": 1}}),
    ("a value replaces an object", {"a": {"b": 1}}, {"a": 1}, {"a": 1}),
    (
        "objects merge at any depth",
        {"a": {"b": {"c": 1, "d": 1}, "e": 1}},
        {"a": {"b": {"c": 2}}},
        {"a": {"b": {"c": 2, "d": 1}, "e": 1}},
    ),
    (
        "a bound is replaced, not intersected",
        BAR,
        {"piRetrospect": {"allowedProjects": ["*"]}},
        {"piRetrospect": {"allowedProjects": ["*"]}},
    ),
    (
        "the user's bound stays beside other keys of the project",
        BAR,
        {"piRetrospect": {"markSteeringMessages": True}},
        {"piRetrospect": {"allowedProjects": ["bar"], "markSteeringMessages": True}},
    ),
    ("a project file without an object adds nothing", {"a": 1}, [2], {"a": 1}),
]


@pytest.mark.parametrize(
    ("rule", "user", "own", "expected"), MERGED, ids=[row[0] for row in MERGED]
)
def test_merge(desk: Desk, rule: str, user: object, own: object, expected: object) -> None:
    """The trusted project's settings over the user's."""
    desk.trust({str(desk.project): True})
    desk.user(user)
    desk.own(own)
    assert desk.read().effective == expected, rule


def test_deep_merge_never_crashes(desk: Desk) -> None:
    """Nesting that the parser still takes gives settings or the policy error."""
    desk.trust({str(desk.project): True})
    for depth in (200, 900, 960, 980, 990):
        desk.user('{"a":' * depth + "1" + "}" * depth)
        desk.own('{"a":' * depth + "2" + "}" * depth)
        desk.read()


def test_settings_of_a_parent_folder_do_not_count(desk: Desk) -> None:
    """There is no search upwards."""
    desk.trust({"/": True})
    write(desk.project.parent / ".pi/settings.json", BAR)
    assert desk.read().effective == {}


def test_the_users_own_settings(desk: Desk) -> None:
    """Without any project's; None where they are broken."""
    where = {"env": desk.env, "cwd": str(desk.project)}
    assert settings.user(**where) == {}
    desk.trust({str(desk.project): True})
    desk.own(BAR)
    desk.user(BAZ)
    assert settings.user(**where) == BAZ
    desk.user("{")
    assert settings.user(**where) is None


# --- trust


@pytest.mark.parametrize(
    ("rule", "words", "default", "trusted"),
    [
        ("no word, no default", {}, None, False),
        ("ask", {}, "ask", False),
        ("never", {}, "never", False),
        ("always", {}, "always", True),
        ("no other spelling of always", {}, True, False),
        ("true", {"proj": True}, None, True),
        ("false beats always", {"proj": False}, "always", False),
        ("null is no word", {"proj": None}, None, False),
        ("null leaves it to the default", {"proj": None}, "always", True),
        ("a parent's word", {"src": True}, None, True),
        ("the top folder's word", {"/": True}, None, True),
        ("the nearest word: false below true", {"src": True, "proj": False}, None, False),
        ("the nearest word: true below false", {"src": False, "proj": True}, None, True),
        ("null lets the parent speak", {"src": True, "proj": None}, None, True),
        ("a neighbour's word", {"other": True}, None, False),
        ("anything else is no word", {"proj": "true"}, None, False),
        ("nor is a number", {"proj": 1}, None, False),
    ],
)
def test_trust(
    desk: Desk, rule: str, words: dict[str, object], default: object, trusted: bool
) -> None:
    """The nearest true or false of trust.json, else the user's default."""
    folders = {
        "proj": str(desk.project),
        "src": str(desk.project.parent),
        "other": str(desk.project) + "ile",
        "/": "/",
    }
    desk.trust({folders[name]: word for name, word in words.items()})
    desk.user({} if default is None else {"defaultProjectTrust": default})
    desk.own(BAR)
    assert desk.trusted() is trusted, rule
    assert desk.read().policy() == Policy(("bar",) if trusted else None), rule


def test_a_project_cannot_trust_itself(desk: Desk) -> None:
    """Only the user's defaultProjectTrust counts."""
    desk.own(BAR | {"defaultProjectTrust": "always"})
    assert desk.read().policy() == Policy(None)


def test_trust_goes_by_the_real_path(desk: Desk) -> None:
    """trust.json holds real paths; the folder may be entered through a link."""
    desk.own(BAR)
    link = desk.home / "link"
    link.symlink_to(desk.project)
    desk.trust({str(link): True})
    assert settings.read(env=desk.env, cwd=str(link)).policy() == Policy(None)
    desk.trust({str(desk.project): True})
    assert settings.read(env=desk.env, cwd=str(link)).policy() == Policy(("bar",))


@pytest.mark.parametrize(
    ("protected", "trusted"),
    [
        (None, True),
        (".pi/session-surgery.json", True),
        (".pi/settings.json", False),
        (".pi/mcp.json", False),
        (".pi/extensions/", False),
        (".pi/skills/", False),
        (".pi/prompts/", False),
        (".pi/themes/", False),
        (".pi/SYSTEM.md", False),
        (".pi/APPEND_SYSTEM.md", False),
        (".agents/skills/", False),
        ("../.agents/skills/", False),
        ("../../.agents/skills/", True),  # that is ~/.agents/skills, the user's own
        ("../.pi/settings.json", True),
    ],
)
def test_what_needs_trust(desk: Desk, protected: str | None, trusted: bool) -> None:
    """A folder with nothing to trust is trusted, unless trust.json says false."""
    if protected is not None:
        path = desk.project / protected
        if protected.endswith("/"):
            path.mkdir(parents=True)
        else:
            write(path, "{}")
    assert desk.trusted() is trusted
    desk.trust({str(desk.project): False})
    assert not desk.trusted()


@pytest.mark.parametrize("broken", [b"", b"{", b"[]", b"null"])
def test_broken_trust_file(desk: Desk, broken: bytes) -> None:
    """Nobody is trusted; where the project speaks about the bound, the policy is an error."""
    desk.user(BAR | {"defaultProjectTrust": "always"})
    desk.trust(broken)
    assert not desk.trusted()
    assert desk.read().policy() == Policy(("bar",)), "no project file: nothing to decide"
    desk.own({"theme": "dark", "a": 1})
    assert desk.read().policy() == Policy(("bar",)), "both answers give this bound"
    assert "theme" not in (desk.read().effective or {}), "untrusted"
    desk.own(BAZ)
    with pytest.raises(PolicyError):
        desk.read().policy()
    desk.own(b"{")
    with pytest.raises(PolicyError):
        desk.read().policy()


def test_agent_dir(desk: Desk) -> None:
    """$PI_CODING_AGENT_DIR, ~ and relative accepted, else ~/.pi/agent; settings come from there."""
    home = str(desk.home)
    for value, expected in [
        ("", f"{home}/.pi/agent"),
        ("~", home),
        ("~/x/", f"{home}/x"),
        ("/abs//y/../x", "/abs/x"),
        ("rel", f"{desk.project}/rel"),
    ]:
        env = desk.env | {"PI_CODING_AGENT_DIR": value}
        assert settings.agent_dir(env, cwd=str(desk.project)) == expected
    assert settings.agent_dir(desk.env) == f"{home}/.pi/agent"
    write(desk.home / "x/settings.json", BAR)
    desk.env["PI_CODING_AGENT_DIR"] = "~/x"
    assert desk.read().policy() == Policy(("bar",))


# --- sessions root


def test_root_order(desk: Desk) -> None:
    """By hand, variable, project's sessionDir, user's, the agent folder's, the default."""
    home, default = str(desk.home), settings.Root(f"{desk.home}/.pi/agent/sessions", False, "")
    root = desk.root()
    assert root == default._replace(source="the default")

    assert desk.root(PI_CODING_AGENT_DIR="~/a") == settings.Root(
        f"{home}/a/sessions", False, "PI_CODING_AGENT_DIR"
    )
    desk.user({"sessionDir": "~/user"})
    file = f"{home}/.pi/agent/settings.json"
    assert desk.root() == settings.Root(f"{home}/user", True, f"sessionDir of {file}")

    desk.own({"sessionDir": "own"})  # untrusted, and counts
    assert not desk.trusted()
    file = f"{desk.project}/.pi/settings.json"
    assert desk.root() == settings.Root(f"{desk.project}/own", True, f"sessionDir of {file}")

    env = "PI_CODING_AGENT_SESSION_DIR"
    assert desk.root(**{env: "/env"}) == settings.Root("/env", True, env)
    assert desk.root(**{env: ""}).source == f"sessionDir of {file}"

    by_hand = settings.Root("/given", None, "--root / sessions_root")
    assert desk.root("/given", **{env: "/env"}) == by_hand
    assert desk.root("", **{env: "/env"}).path == "/env"


@pytest.mark.parametrize(
    ("rule", "user", "own", "expected"),
    [
        ("empty is unset", {"sessionDir": ""}, {}, None),
        ("no string is unset", {"sessionDir": 5}, {}, None),
        ("the project's empty value replaces the user's", {"sessionDir": "/u"}, "EMPTY", None),
        ("null as well", {"sessionDir": "/u"}, {"sessionDir": None}, None),
        ("a silent project keeps the user's", {"sessionDir": "/u"}, {"a": 1}, "/u"),
        ("a broken project file hides nothing", {"sessionDir": "/u"}, "{", "/u"),
        ("a broken user file hides nothing", "{", {"sessionDir": "/p"}, "/p"),
        ("both broken: the default", "{", "", None),
        ("a list holds nothing", ["sessionDir"], [], None),
    ],
)
def test_session_dir_setting(
    desk: Desk, rule: str, user: object, own: object, expected: str | None
) -> None:
    """As merged; a file that cannot be read only does not contribute."""
    desk.user(user)
    desk.own({"sessionDir": ""} if own == "EMPTY" else own)
    assert desk.root().path == (expected or f"{desk.home}/.pi/agent/sessions"), rule


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ("/a/b", "/a/b"),
        ("/a/b/", "/a/b"),
        ("/a//b/./c/..", "/a/b"),
        ("//a", "/a"),
        ("rel", "/here/rel"),
        ("../rel", "/rel"),
        (".", "/here"),
        ("~", "/home/me"),
        ("~/s", "/home/me/s"),
        ("~you/s", "/here/~you/s"),
        ("a/~", "/here/a/~"),
    ],
)
def test_paths_become_absolute(given: str, path: str) -> None:
    """~ is env's HOME, relative is cwd's, the rest is lexical; everywhere the same."""
    env = {"HOME": "/home/me"}
    assert settings.find_root(given, env=env, cwd="/here").path == path
    assert settings.current_session(given, env=env, cwd="/here") == path
    assert settings.index_home(given, env=env, cwd="/here") == path


def test_home_of_the_account_where_env_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without HOME, ~ is what the system says."""
    monkeypatch.setenv("HOME", "/account")
    for env in ({}, {"HOME": ""}):
        assert settings.find_root("~/s", env=env, cwd="/").path == "/account/s"


def test_defaults_are_the_process(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without arguments, the environment and the folder of the process count."""
    monkeypatch.setenv("HOME", str(desk.home))
    monkeypatch.delenv("PI_CODING_AGENT_DIR", raising=False)
    monkeypatch.setenv("PI_SESSION_FILE", "s.jsonl")
    monkeypatch.chdir(desk.project)
    desk.user(BAR)
    assert settings.read().policy() == Policy(("bar",))
    assert settings.agent_dir() == f"{desk.home}/.pi/agent"
    assert settings.current_session(None) == f"{desk.project}/s.jsonl"
    assert settings.find_root("x", cwd="sub").path == f"{desk.project}/sub/x"


def test_deleted_working_folder(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """The default root is still found; relative paths lean on PWD."""
    gone = desk.home / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    env = desk.env | {"PWD": str(gone)}
    assert settings.find_root(None, env=env).path == f"{desk.home}/.pi/agent/sessions"
    assert settings.find_root("x", env=env).path == f"{gone}/x"
    assert settings.find_root("x", env=desk.env).path == "/x"
    assert settings.read(env=env).policy() == Policy(None)


# --- index folder and current session


@pytest.mark.parametrize(
    ("rule", "given", "env", "platform", "expected"),
    [
        ("by hand", "/i", {"SESSIONINDEX_DIR": "/e"}, "linux", "/i"),
        ("variable", None, {"SESSIONINDEX_DIR": "/e", "XDG_CACHE_HOME": "/x"}, "linux", "/e"),
        ("variable, ~", None, {"SESSIONINDEX_DIR": "~/e"}, "linux", "/home/me/e"),
        ("empty is unset", "", {"SESSIONINDEX_DIR": ""}, "linux", "/home/me/.cache/sessionindex"),
        ("XDG", None, {"XDG_CACHE_HOME": "/x/"}, "linux", "/x/sessionindex"),
        ("XDG empty", None, {"XDG_CACHE_HOME": ""}, "linux", "/home/me/.cache/sessionindex"),
        ("XDG relative", None, {"XDG_CACHE_HOME": "x"}, "linux", "/home/me/.cache/sessionindex"),
        ("default", None, {}, "linux", "/home/me/.cache/sessionindex"),
        ("variable on macOS", None, {"SESSIONINDEX_DIR": "/e"}, "darwin", "/e"),
        ("macOS", None, {}, "darwin", "/home/me/Library/Caches/sessionindex"),
        (
            "macOS has its own place",
            None,
            {"XDG_CACHE_HOME": "/x"},
            "darwin",
            "/home/me/Library/Caches/sessionindex",
        ),
    ],
)
def test_index_home(
    rule: str, given: str | None, env: dict[str, str], platform: str, expected: str
) -> None:
    """By hand, $SESSIONINDEX_DIR, the platform's cache folder."""
    found = settings.index_home(
        given, env={"HOME": "/home/me"} | env, platform=platform, cwd="/here"
    )
    assert found == expected, rule


@pytest.mark.parametrize(
    ("rule", "given", "variable", "expected"),
    [
        ("nothing known", None, None, None),
        ("the variable", None, "/s/a.jsonl", "/s/a.jsonl"),
        ("an empty variable is none", None, "", None),
        ("by hand", "/s/b.jsonl", "/s/a.jsonl", "/s/b.jsonl"),
        ("none by hand beats the variable", "", "/s/a.jsonl", None),
        ("a relative one is resolved lexically", None, "s/../a.jsonl", "/here/a.jsonl"),
        ("slashes are squeezed", "//s//a.jsonl/", None, "/s/a.jsonl"),
    ],
)
def test_current_session(
    rule: str, given: str | None, variable: str | None, expected: str | None
) -> None:
    """An argument, "" for none, else PI_SESSION_FILE."""
    env = {} if variable is None else {"PI_SESSION_FILE": variable}
    assert settings.current_session(given, env=env, cwd="/here") == expected, rule


def test_current_session_keeps_its_spelling(desk: Desk) -> None:
    """A link is not resolved: a linked spelling excludes nothing, as in the contract."""
    link = desk.home / "link"
    link.symlink_to(desk.project)
    path = f"{link}/a.jsonl"
    assert settings.current_session(path, env=desk.env, cwd="/") == path
