"""Pi's settings files, its trust and the environment, read into frozen values.

Goal: the bound, the sessions root, the index folder and the current session as Pi itself would
find them, for a program that runs beside Pi.

Rules:

- Read anew for every call; nothing is kept. Environment and working directory are arguments of
  the public functions and default to those of the process, in `_place` alone.
- Effective settings: `<agent dir>/settings.json`, and over it `<cwd>/.pi/settings.json` (no search
  upwards) if the folder is trusted. Objects merge, everything else is replaced.
- A missing file holds nothing; one that cannot be read or parsed makes the policy an error. A file
  whose value is no object (a list, say) holds nothing, as in Pi.
- Trust: the nearest word of trust.json, else a folder with nothing to trust is trusted, else the
  user's `defaultProjectTrust`, where all but "always" counts as untrusted.
- Paths become absolute and lexically normal, never resolved; an empty one counts as not given.

It cannot see Pi's flags, handlers and "this session only" answers: inside Pi the extension hands
over what Pi merged. Pi's list-joining settings (defaultTools, packages) merge here like the rest.
"""

import os
import stat
import sys
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from sessionindex import access
from sessionindex.errors import PolicyError


class Settings(NamedTuple):
    """Pi's effective settings at the time of one call; None where a file could not be read."""

    effective: Mapping[str, object] | None

    def policy(self) -> access.Policy:
        """Return the access bound, or raise `PolicyError`."""
        if self.effective is None:
            raise PolicyError
        return access.policy(self.effective)


class Root(NamedTuple):
    """Where the sessions are, and who said so.

    `flat`: session files directly in the folder (True), project folders (False), or to be decided
    by looking, because the root was given by hand (None). `source` is for error messages.
    """

    path: str
    flat: bool | None
    source: str


def read(
    given: object = None, *, env: Mapping[str, str] | None = None, cwd: str | None = None
) -> Settings:
    """Return the effective settings: `given` as it is, or what Pi's files say now.

    A `given` that is no dict is kept as unreadable settings, which is the policy error.
    """
    if given is not None:
        return Settings(given if isinstance(given, Mapping) else None)
    place = _place(env, cwd)
    user = _load(place.user_file)
    if user is None:
        return Settings(None)
    trust = _trust(place, user)
    if trust is False:
        return Settings(user)
    project = _load(place.project_file)
    if project is None:
        return Settings(None)
    if trust is None:
        # A broken trust.json stops Pi itself, so there is no answer to copy. Where the project
        # says nothing about the bound both answers agree; where it does, choosing one might
        # widen the bound, so it counts as unreadable.
        return Settings(None if "piRetrospect" in project else user)
    try:
        return Settings(_merge(user, project))
    except RecursionError:
        return Settings(None)


def user(
    *, env: Mapping[str, str] | None = None, cwd: str | None = None
) -> Mapping[str, object] | None:
    """Return what the user's own settings file says; None where it cannot be read."""
    return _load(_place(env, cwd).user_file)


def project_trusted(*, env: Mapping[str, str] | None = None, cwd: str | None = None) -> bool:
    """Say whether Pi would trust the folder `cwd`; a broken trust.json trusts nothing."""
    place = _place(env, cwd)
    return _trust(place, _load(place.user_file) or {}) is True


def agent_dir(env: Mapping[str, str] | None = None, *, cwd: str | None = None) -> str:
    """Return Pi's own folder: `$PI_CODING_AGENT_DIR`, else `~/.pi/agent`."""
    return _place(env, cwd).agent


def find_root(
    given: str | None, *, env: Mapping[str, str] | None = None, cwd: str | None = None
) -> Root:
    """Return the sessions root in Pi's order; a broken settings file only does not contribute.

    The project's `sessionDir` counts even where the project is untrusted, as in Pi.
    """
    place = _place(env, cwd)
    if given:
        return Root(place.absolute(given), None, "--root / sessions_root")
    if variable := place.env.get("PI_CODING_AGENT_SESSION_DIR"):
        return Root(place.absolute(variable), True, "PI_CODING_AGENT_SESSION_DIR")
    for file in (place.project_file, place.user_file):
        settings = _load(file) or {}
        if "sessionDir" in settings:
            folder = settings["sessionDir"]
            if isinstance(folder, str) and folder:
                return Root(place.absolute(folder), True, f"sessionDir of {file}")
            # As merged: the project's empty value replaces the user's and means "not set".
            break
    named = place.env.get("PI_CODING_AGENT_DIR")
    source = "PI_CODING_AGENT_DIR" if named else "the default"
    return Root(os.path.join(place.agent, "sessions"), False, source)


def index_home(
    given: str | None,
    *,
    env: Mapping[str, str] | None = None,
    platform: str | None = None,
    cwd: str | None = None,
) -> str:
    """Return the folder that holds one index folder for each root."""
    place = _place(env, cwd)
    if chosen := given or place.env.get("SESSIONINDEX_DIR"):
        return place.absolute(chosen)
    if (platform or sys.platform) == "darwin":
        return place.absolute("~/Library/Caches/sessionindex")
    cache = place.env.get("XDG_CACHE_HOME", "")
    # The XDG specification: a relative path there is invalid and to be ignored.
    base = cache if os.path.isabs(cache) else "~/.cache"
    return place.absolute(os.path.join(base, "sessionindex"))


def current_session(
    given: str | None, *, env: Mapping[str, str] | None = None, cwd: str | None = None
) -> str | None:
    """Return the path of the running session's file, or None; `given` "" says there is none.

    Never resolves links: the contracts compare the current session by its spelling.
    """
    place = _place(env, cwd)
    path = place.env.get("PI_SESSION_FILE") if given is None else given
    return place.absolute(path) if path else None


def auto_trim(
    project: str | None, *, env: Mapping[str, str] | None = None, cwd: str | None = None
) -> bool | str:
    """Say whether a session is to be trimmed after a compaction: yes, no, or why nobody can say.

    `project` is a trusted folder whose own word counts more than the user's; None for none.
    """
    files = [os.path.join(_place(env, cwd).agent, "extensions", _SURGERY)]
    if project is not None:
        files.append(os.path.join(_place(env, cwd).absolute(project), ".pi", _SURGERY))
    wanted = True
    for file in files:
        try:
            value = _json(file)
        except _Broken:
            return f"automatic trimming is off: {file} cannot be read"
        word = value.get(_AUTO, wanted) if isinstance(value, dict) else None
        if not isinstance(word, bool):
            return f"automatic trimming is off: {_AUTO} of {file} is neither true nor false"
        wanted = word
    return wanted


_SURGERY = "session-surgery.json"
_AUTO = "autoAfterCompaction"


def surroundings(env: Mapping[str, str], *, cwd: str | None = None) -> dict[str, str]:
    """Return the variables that decide where things are, for a program that starts elsewhere.

    What is relative is made absolute by this folder.
    """
    found = {}
    if env.get("PI_CODING_AGENT_DIR"):
        found["PI_CODING_AGENT_DIR"] = agent_dir(env, cwd=cwd)
    if env.get("PI_CODING_AGENT_SESSION_DIR"):
        found["PI_CODING_AGENT_SESSION_DIR"] = find_root(None, env=env, cwd=cwd).path
    if env.get("SESSIONINDEX_DIR"):
        found["SESSIONINDEX_DIR"] = index_home(None, env=env, cwd=cwd)
    if os.path.isabs(env.get("XDG_CACHE_HOME", "")):
        found["XDG_CACHE_HOME"] = env["XDG_CACHE_HOME"]
    return found


class _Place(NamedTuple):
    """An environment and a working directory: all that paths depend on."""

    env: Mapping[str, str]
    cwd: str

    @property
    def home(self) -> str:
        return self.env.get("HOME") or os.path.expanduser("~")

    @property
    def agent(self) -> str:
        return self.absolute(self.env.get("PI_CODING_AGENT_DIR") or "~/.pi/agent")

    @property
    def user_file(self) -> str:
        return os.path.join(self.agent, "settings.json")

    @property
    def project_file(self) -> str:
        return os.path.join(self.cwd, ".pi", "settings.json")

    def absolute(self, path: str) -> str:
        # As Pi: "~" and "~/..." only; "~name" is an ordinary file name.
        if path == "~" or path.startswith("~/"):
            path = self.home + path[1:]
        return _normal(os.path.join(self.cwd, path))


def _place(env: Mapping[str, str] | None, cwd: str | None) -> _Place:
    env = os.environ if env is None else env
    if cwd is None or not os.path.isabs(cwd):
        try:
            here = os.getcwd()
        except OSError:
            # The folder was deleted under us: its name still makes paths absolute.
            here = env.get("PWD", "")
        cwd = os.path.join("/", here, cwd or "")
    return _Place(env, _normal(cwd))


def _normal(path: str) -> str:
    path = os.path.normpath(path)
    # POSIX keeps two leading slashes; JavaScript, whose spelling is compared, does not.
    return "/" + path.lstrip("/") if path.startswith("//") else path


def _load(path: str) -> Mapping[str, object] | None:
    """Read one settings file: its object, {} where there is none, None where it is broken."""
    try:
        value = _json(path)
    except _Broken:
        return None
    return value if isinstance(value, dict) else {}


class _Broken(Exception):
    """A file is there and cannot be read or parsed; never leaves this module."""


def _json(path: str) -> object:
    import json  # costs start-up time, and a call that is given its settings never needs it

    try:
        # A committed link to a device or a pipe must not hang or fill the reader.
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise _Broken
        with open(path, "rb") as file:
            # As Pi decodes: a BOM is dropped, invalid bytes become U+FFFD.
            text = file.read().decode("utf-8-sig", "replace")
        return json.loads(text, parse_constant=_refuse)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise _Broken from error


def _refuse(constant: str) -> object:
    raise ValueError(constant)  # NaN and Infinity are no JSON, though Python reads them


def _merge(user: Mapping[str, object], project: Mapping[str, object]) -> Mapping[str, object]:
    merged = dict(user)
    for key, value in project.items():
        old = merged.get(key)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            merged[key] = _merge(old, value)
        else:
            merged[key] = value
    return merged


def _trust(place: _Place, user: Mapping[str, object]) -> bool | None:
    """Decide trust in the folder; None where trust.json is broken and nobody can say."""
    try:
        words = _json(os.path.join(place.agent, "trust.json"))
    except _Broken:
        return None
    if not isinstance(words, dict):
        return None
    folder = _real(place.cwd)
    for ancestor in _upwards(folder):
        word = words.get(ancestor)
        if isinstance(word, bool):
            return word
    return not _needs_trust(place, folder) or user.get("defaultProjectTrust") == "always"


_PROTECTED = (
    "settings.json",
    "mcp.json",
    "extensions",
    "skills",
    "prompts",
    "themes",
    "SYSTEM.md",
    "APPEND_SYSTEM.md",
)


def _needs_trust(place: _Place, folder: str) -> bool:
    if any(os.path.exists(os.path.join(folder, ".pi", name)) for name in _PROTECTED):
        return True
    home = place.absolute("~")
    own = (home, _real(home))  # ~/.agents/skills is the user's own
    return any(
        ancestor not in own and os.path.exists(os.path.join(ancestor, ".agents", "skills"))
        for ancestor in _upwards(folder)
    )


def _real(path: str) -> str:
    try:
        return os.path.realpath(path)
    except ValueError:
        return path  # a NUL or a lone surrogate: no such folder, so no link to follow


def _upwards(folder: str) -> Iterator[str]:
    while True:
        yield folder
        parent = os.path.dirname(folder)
        if parent == folder:
            return
        folder = parent
