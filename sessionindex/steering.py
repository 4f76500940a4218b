"""mark_steering: which message of a user is a correction of a running agent, and its mark.

The mark is the prefix `STEERING: ` in the message itself, so that the model sees it and a later
search finds it. It is put there only where the operator asked for it (the setting
`piRetrospect.markSteeringMessages` is exactly true), only on what steers a streaming agent, never
on what an extension made, on commands, or on what has the mark already. White space before either
is text like any other.

Settings that cannot be read ask for nothing. The access bound has no say: a broken list of
projects leaves the mark as it is. Pure: values in, a text out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

PREFIX: Final = "STEERING: "


def marked(
    text: str,
    *,
    source: str | None,
    streaming_behavior: str | None,
    settings: Mapping[str, object] | None,
) -> str | None:
    """The text with its mark, or None where it stays as it is.

    `settings` are the effective ones, None where they could not be read.
    """
    steers = streaming_behavior == "steer" and source != "extension"
    if not steers or text.startswith(("/", PREFIX)) or not _is_on(settings):
        return None
    return PREFIX + text


def _is_on(settings: Mapping[str, object] | None) -> bool:
    namespace = settings.get("piRetrospect") if isinstance(settings, Mapping) else None
    return isinstance(namespace, Mapping) and namespace.get("markSteeringMessages") is True
