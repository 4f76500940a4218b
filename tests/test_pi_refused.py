"""Trims that must not be in the real Pi: the file stays whole, one notice, and Pi goes on."""

from __future__ import annotations

import pytest
from pi_files import lines, users
from pi_rpc import Place

READS = {"tool": "bash", "args": {"command": "seq 2000"}}
SHADOW = """
export default function (pi) {
	pi.on("session_start", (_event, ctx) => { ctx.sessionManager.NAME = VALUE; });
}
"""


def two_days(place: Place) -> tuple[list[str], bytes, bytes]:
    """Two compactions; the notices, and the file before and after the first."""
    place.script(READS, "Read.", "And then.", READS, "Read.", "And then.", "Still here.")
    with place.pi() as pi:
        pi.prompt("Please read.")
        pi.prompt("And then?")
        before = pi.file.read_bytes()
        pi.send("compact")
        after = pi.file.read_bytes()
        pi.prompt("Please read.")
        pi.prompt("And then?")
        pi.send("compact")
        pi.prompt("Are you still there?")
        file, notices = pi.file, list(pi.notices)
    assert users(file)[-1] == "Are you still there?"
    assert lines(file)[-1]["message"]["content"][0]["text"] == "Still here."
    assert place.leftovers() == []
    return notices, before, after


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("setSessionFile", "undefined", "this Pi cannot load a rewritten session"),
        ("getSessionName", '() => "another"', "Pi would see another context"),
    ],
)
def test_a_pi_that_does_not_agree(name: str, value: str, reason: str, place: Place) -> None:
    """It cannot load what was rewritten, or sees something else in it."""
    place.extension("shadow", SHADOW.replace("NAME", name).replace("VALUE", value))
    [notice], before, after = two_days(place)
    assert reason in notice and "until this session is loaded again" in notice
    assert after.startswith(before)


def test_a_commit_that_fails(place: Place) -> None:
    place.wrapped('case "$*" in *--commit*) exit 9 ;; esac; exec "$PYTHON" "$@"')
    [notice], before, after = two_days(place)
    assert "status 9" in notice
    assert after.startswith(before)


def test_a_commit_that_was_done_without_a_word(place: Place) -> None:
    """What is in the file counts, and Pi has it."""
    place.wrapped('case "$*" in *--commit*) "$PYTHON" "$@" > /dev/null; exit 9 ;; esac\n'
                  'exec "$PYTHON" "$@"')  # fmt: skip
    [notice], before, after = two_days(place)
    assert "status 9" in notice
    assert len(after) < len(before)


def test_a_file_that_was_rewritten_meanwhile(place: Place) -> None:
    """By another program, between the two steps: not trimmed."""
    change = "import sys; p = sys.argv[1]; b = open(p, 'rb').read(); "
    change += "open(p, 'wb').write(b.replace(b'Please read', b'Please rest', 1))"
    place.wrapped(
        f'case "$*" in *--commit*) "$PYTHON" -c "{change}" "$(cat "$HOME/file")" ;; esac\n'
        'case "$*" in *--prepare*) for one; do case "$one" in *.jsonl)'
        ' printf %s "$one" > "$HOME/file" ;; esac; done ;; esac\n'
        'exec "$PYTHON" "$@"'
    )
    [notice], before, after = two_days(place)
    assert "the source no longer starts with the snapshot" in notice
    assert after.startswith(before.replace(b"Please read", b"Please rest", 1))
