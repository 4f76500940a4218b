"""The access bound: `piRetrospect.allowedProjects` as a predicate on a session's cwd.

Goal: one place that says what the list means, so that every surface asks the same question.

Rules:

- A bound that cannot be read is never read as no bound: whatever is neither absent nor a valid
  list is a `PolicyError`. An empty list is a decision and admits nothing.
- Names are base names of working directories. A project belongs to a name when it equals it or
  continues it with "-". Matching is lexical and case-sensitive; no parent folder is consulted,
  nothing is resolved against the disk, and "/" alone separates.
- The exact item "*" lifts the bound before any other item is looked at; "*" in any other item is
  an ordinary character.

It does not know which session owns a file, and it is no sandbox: whoever can pass settings can
widen the bound.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from sessionindex.errors import PolicyError


class Policy(NamedTuple):
    """What a call may see. `allowed`: None = every project; else the allowed base names.

    `within` is a second list that has to admit a session too: a caller narrows, never widens.
    """

    allowed: tuple[str, ...] | None
    within: tuple[str, ...] | None = None

    def admits(self, cwd: str) -> bool:
        """Say whether a session of this working directory may be seen."""
        return (self.allowed is None or belongs(cwd, self.allowed)) and (
            self.within is None or belongs(cwd, self.within)
        )

    @property
    def is_bound(self) -> bool:
        """Whether anything could be refused at all."""
        return self.allowed is not None or self.within is not None


def project_name(cwd: str) -> str:
    """Return the last segment of a working directory; "" for "/" and for ""."""
    return cwd.rstrip("/").rpartition("/")[2]


def belongs(cwd: str, names: Iterable[str]) -> bool:
    """Say whether the project of `cwd` is one of `names` or a "-" sibling of one."""
    project = project_name(cwd)
    if not project:
        return False
    return any(project == name or project.startswith(name + "-") for name in names)


def names(given: Sequence[str]) -> tuple[str, ...] | None:
    """Base names as a caller gives them, None where they lift the bound; raises `PolicyError`."""
    return policy({"piRetrospect": {"allowedProjects": list(given)}}).allowed


def policy(settings: object) -> Policy:
    """Read the bound out of the effective settings; `PolicyError` where that is impossible."""
    if not isinstance(settings, Mapping):
        raise PolicyError
    if "piRetrospect" not in settings:
        return Policy(None)
    namespace = settings["piRetrospect"]
    if not isinstance(namespace, Mapping):
        raise PolicyError
    if "allowedProjects" not in namespace:
        return Policy(None)
    listed = namespace["allowedProjects"]
    if not isinstance(listed, list):
        # A null is a value that is no list, not an absent key: the bound fails closed.
        raise PolicyError
    if "*" in listed:
        return Policy(None)
    if not all(_is_name(name) for name in listed):
        raise PolicyError
    return Policy(tuple(listed))


def _is_name(name: object) -> bool:
    return (
        isinstance(name, str)
        and name not in ("", ".", "..")
        and "/" not in name
        and "\\" not in name
    )
