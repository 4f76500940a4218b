"""What a parameter must look like: a function for each shape, and `shaped` for a whole call.

A shape takes a name and a value and gives the value back, or raises ParameterError with the fixed
message. Unknown names are refused before any shape is looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from sessionindex import timestamps
from sessionindex.errors import ParameterError
from sessionindex.text import spelled
from sessionindex.timestamps import Window

Shape = Callable[[str, Any], Any]


def strings(name: str, value: Any) -> tuple[str, ...]:
    """One or more non-empty strings."""
    if (
        not isinstance(value, list | tuple)
        or not value
        or not all(isinstance(item, str) and item for item in value)
    ):
        raise ParameterError(f"{name} must be a list of non-empty strings")
    return tuple(value)


def choice(*words: str) -> Shape:
    """One of these words."""

    def check(name: str, value: Any) -> str:
        if not isinstance(value, str) or value not in words:
            raise ParameterError(f"{name} must be one of {', '.join(words)}")
        return value

    return check


def choices(*words: str) -> Shape:
    """One or more of these words."""

    def check(name: str, value: Any) -> tuple[str, ...]:
        for word in strings(name, value):
            choice(*words)(name, word)
        return tuple(value)

    return check


def flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise ParameterError(f"{name} must be true or false")
    return value


def positive(name: str, value: Any) -> int:
    """A whole number from 1 on; 3.0 is one."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or value < 1 or value != value // 1:
        raise ParameterError(f"{name} must be a positive integer: {spelled(value)}")
    return int(value)


def anything(name: str, value: Any) -> Any:
    """For values whose meaning is checked in the facts' own words later."""
    return value


def string(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ParameterError(f"{name} must be a string")
    return value


def bounds(given: Mapping[str, Any]) -> Window:
    """The window of a call's `startTimestamp` and `endTimestamp`; a null is no timestamp.

    Raises ParameterError.
    """
    for name in ("startTimestamp", "endTimestamp"):
        if name in given:
            timestamps.bound(name, given[name])
    return timestamps.window(given.get("startTimestamp"), given.get("endTimestamp"))


def filled(name: str, value: Any) -> str:
    """A string with something in it."""
    if not isinstance(value, str) or not value:
        raise ParameterError(f"{name} must be a non-empty string")
    return value


def shaped(params: Any, shapes: Mapping[str, Shape]) -> dict[str, Any]:
    """The parameters of a call, each of a known name and of its shape."""
    if not isinstance(params, Mapping):
        raise ParameterError("parameters must be an object")
    for name in params:
        if name not in shapes:
            raise ParameterError(f"unknown parameter: {spelled(name)}")
    return {name: shapes[name](name, params[name]) for name in shapes if name in params}


def camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)


_POSITIONAL: Final = ("in", "terms")
"""What has another name, or none, among the arguments of the library."""


def arguments(filters: Mapping[str, Any], **given: Any) -> dict[str, Any]:
    """Arguments in snake_case as the parameters of a tool; None asks nothing."""
    params = dict(given)
    for name, value in filters.items():
        spelled = "in" if name == "kinds" else camel(name)
        if spelled in params or name in _POSITIONAL or name != name.lower() or name[-1:] == "_":
            raise ParameterError(f"unknown parameter: {name}")
        if value is not None:
            params[spelled] = value
    return params
