"""What a trim keeps, what it hangs elsewhere, and what it refuses: decided on numbers alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from build import Builder, encoded, session
from histories import back, begun, compacted, ids, outline, turn, values

from sessionindex.trim.plan import NO_PARENT, Nothing, Plan, Refusal, plan
from sessionindex.trim.relink import NoParent, relinked, same_but_parent


def decided(data: Builder | bytes) -> Plan:
    return plan(outline(data))


def kept(data: Builder | bytes) -> list[str]:
    """The ids of what stays."""
    found = decided(data).kept
    return [one for one, stays in zip(ids(data), found, strict=True) if stays]


def gone(data: Builder | bytes) -> list[dict[str, Any]]:
    found = decided(data).kept
    return [value for value, stays in zip(values(data), found, strict=True) if not stays]


def parents(data: Builder) -> dict[str, str | None]:
    """Who hangs on whom in the trimmed file, of those that hang elsewhere now."""
    names = ids(data)
    links = decided(data).relinked
    return {names[row]: None if to == NO_PARENT else names[to] for row, to in links.items()}


def changed(story: Builder, number: int, **fields: Any) -> bytes:
    """The session with fields of its entry `number` (from 0) set; None takes one away."""
    lines = story.bytes().splitlines(keepends=True)
    value = json.loads(lines[number + 1]) | fields
    lines[number + 1] = encoded({k: v for k, v in value.items() if v != "-"}) + b"\n"
    return b"".join(lines)


# --- what stays ----------------------------------------------------------------------------------


def test_the_hidden_turns_go_and_what_a_resume_needs_stays() -> None:
    """Model, thinking level and extension records before the boundary stay in one chain."""
    story = compacted()
    names = ids(story)
    first = next(n for n, value in enumerate(values(story)) if value["type"] == "custom")
    assert kept(story) == [*names[:2], *names[first:]]
    assert parents(story) == {names[first]: names[1]}
    dropped = decided(story).dropped
    assert {kind: one.entries for kind, one in dropped.items()} == {
        "user": 3,
        "assistant": 6,
        "toolResult": 3,
    }
    sizes = [len(encoded(value)) + 1 for value in gone(story)]
    assert sum(one.bytes for one in dropped.values()) == sum(sizes)


@pytest.mark.parametrize(
    ("add", "stays"),
    [
        (lambda s: s.custom("todo", 1), True),
        (lambda s: s.custom("ide-nested-results", 1), False),
        (lambda s: s.entry("custom_message", customType="x", content="c", display=True), True),
        (lambda s: s.entry("usage", note="u"), False),
        (lambda s: s.entry("context_edit", targetId="00000001", replacement=None), False),
        (lambda s: s.entry("branch_summary", summary="s", fromId="00000001"), False),
        (lambda s: s.entry("future_thing", payload=1), False),
        (lambda s: s.compaction("older"), False),
        (lambda s: s.info("the name"), True),
        (lambda s: s.entry("model_change", provider="p", modelId="q"), True),
        (lambda s: s.entry("thinking_level_change", thinkingLevel="off"), True),
        (lambda s: s.line(b"this is no JSON"), True),
        (lambda s: s.line(b""), True),
    ],
)
def test_each_kind_before_the_boundary(add: Callable[[Builder], Builder], stays: bool) -> None:
    story = begun("t")
    add(story)
    row = len(story) - 2
    first = len(story)
    turn(story, "kept")
    story.compaction("s", keep=ids(story)[-4])
    assert bool(decided(story).kept[row]) is stays
    assert first


def test_only_the_last_of_settings_and_names() -> None:
    story = session("t")
    for number in range(3):
        story.entry("model_change", provider="p", modelId=str(number)).info(str(number))
        story.entry("thinking_level_change", thinkingLevel=str(number)).user("u")
    story.compaction("s")  # keeps the last question
    assert [value.get("modelId", value.get("name", value.get("thinkingLevel")))
            for value in values(story)[:-2] if value["id"] in kept(story)] == ["2"] * 3  # fmt: skip


def test_the_last_assistant_where_it_names_the_model_last() -> None:
    """Nothing after the boundary names a model: then the message that did stays."""
    story = begun("t").user("only this is kept").compaction("s", keep=None)
    answers = [v["id"] for v in values(story) if v.get("message", {}).get("role") == "assistant"]
    assert [one for one in kept(story) if one in answers] == answers[-1:]


def test_labels_stay_with_what_they_name() -> None:
    story = begun("t").custom("todo", 1)
    todo = ids(story)[-1]
    story.entry("label", targetId=todo, label="a")
    story.entry("label", targetId=ids(story)[-1], label="of a label")
    story.entry("label", targetId=ids(story)[3], label="of what goes")
    labels = ids(story)[-3:]
    turn(story, "kept")
    story.compaction("s", keep=ids(story)[-4])
    assert [one in kept(story) for one in labels] == [True, True, False]


def test_branches_stay_or_go_with_what_they_hang_off() -> None:
    story = begun("t")
    hidden = ids(story)[4]
    back(story, hidden).user("left behind early").custom("todo", 1)
    early = ids(story)[-2:]
    turn(back(story, hidden).user("again"), "kept")
    boundary, leaf = ids(story)[-4], ids(story)[-1]
    back(story, boundary).user("left behind late")
    late = ids(story)[-1]
    back(story, leaf).compaction("s", keep=boundary)
    assert [one in kept(story) for one in (*early, late)] == [False, True, True]
    assert parents(story)[early[1]] == ids(story)[1]


def test_what_stays_of_a_tree_of_its_own_hangs_on_nothing() -> None:
    story = session("t").user("another beginning").custom("todo", 1)
    other = ids(story)[-1]
    back(story, None).user("old").user("kept").compaction("s")
    assert parents(story) == {other: None, ids(story)[3]: None}


# --- nothing to do -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("story", "reason"),
    [
        (session("t"), "the session has no entries"),
        (begun("t"), "no compaction on the active branch"),
        (session("t").user("a").compaction("s"), "nothing is hidden from the model: there is"),
    ],
)
def test_nothing_to_trim(story: Builder, reason: str) -> None:
    with pytest.raises(Nothing, match=reason):
        decided(story)


# --- refusals ------------------------------------------------------------------------------------


def head(**fields: Any) -> bytes:
    """The compacted session with another header."""
    lines = compacted().bytes().splitlines(keepends=True)
    value = {k: v for k, v in (json.loads(lines[0]) | fields).items() if v != "-"}
    return encoded(value) + b"\n" + b"".join(lines[1:])


STORY = compacted()
COUNT = len(ids(STORY))
C = next(n for n, value in enumerate(values(STORY)) if value["type"] == "compaction")
B = C - 4


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (head(version=2), "session version 2 is too old: open it once in Pi"),
        (head(version="-"), "session version 1 is too old"),
        (head(version="3"), "session version unknown is too old"),
        (head(version=4), "session version 4 is newer than this trimmer knows"),
        (head(id=7), "the header has no id"),
        (b"\xef\xbb\xbf" + STORY.bytes(), "byte order mark"),
        (b"{}\n" + STORY.bytes(), "first line is not a session header"),
        (changed(STORY, C, firstKeptEntryId="0badf00d"), "is not before it on its branch"),
        (changed(STORY, C, firstKeptEntryId="-"), "is not before it on its branch"),
        (changed(STORY, C, firstKeptEntryId=ids(STORY)[-1]), "is not before it on its branch"),
        (changed(STORY, B, parentId="deadbeef"), "missing in the part that the model sees"),
        (changed(STORY, COUNT - 1, parentId="deadbeef"), "missing in the part that the model"),
        (changed(STORY, 3, parentId="deadbeef"), "the compaction holds no system message"),
        (changed(STORY, 3, id=ids(STORY)[5]), "an entry id stands on several lines"),
        (changed(STORY, 3, parentId=ids(STORY)[3]), "parents in a circle"),
        (changed(STORY, 3, parentId=ids(STORY)[5]), "parents in a circle"),
        (changed(STORY, COUNT - 1, id="-"), "the last entry has no id"),
        (changed(STORY, COUNT - 1, id=5), "an entry has a id that is no text"),
        (changed(STORY, COUNT - 1, message=None), "a message entry has no message"),
        (STORY.bytes() + b"5\n", "the last entry has no id"),
        (STORY.bytes() + b'{"x":' + b"[" * 2000 + b"]" * 2000 + b"}\n", "nested too deep"),
        (
            changed(STORY, COUNT - 3, parentId=ids(STORY)[4]),
            "a tool call and its result|refers to dropped|no compaction",
        ),
    ],
)
def test_refused(data: bytes, reason: str) -> None:
    with pytest.raises((Refusal, Nothing), match=reason):
        decided(data)


def test_a_complete_checkpoint_hides_a_missing_parent() -> None:
    data = changed(STORY, 3, parentId="deadbeef")
    lines = data.splitlines(keepends=True)
    value = json.loads(lines[C + 1]) | {"systemMessage": {"role": "system", "content": "all"}}
    lines[C + 1] = encoded(value) + b"\n"
    assert decided(b"".join(lines)).dropped


def test_a_later_line_must_not_refer_to_what_goes() -> None:
    """Somebody went back behind the compaction; only the branch that is not active hangs there."""
    story = compacted()
    leaf, hidden = ids(story)[-1], ids(story)[4]
    back(story, hidden).custom("x", 1)
    back(story, leaf).user("on")
    with pytest.raises(Refusal, match="a line after the compaction refers to dropped history"):
        decided(story)


def test_a_result_is_not_kept_without_its_call() -> None:
    story = begun("t").call("bash", command="slow").compaction("first")
    first = ids(story)[-1]
    story.result("it came later").assistant("done", provider="p", model="m")
    story.user("on").compaction("second", keep=first)
    with pytest.raises(Refusal, match="a tool call and its result would be separated"):
        decided(story)


def test_call_ids_may_repeat() -> None:
    """Some providers count their calls anew in every turn."""
    story = session("t")
    for word in ("old", "kept"):
        block = {"type": "toolCall", "id": "call_0", "name": "bash", "arguments": {}}
        story.message("assistant", content=[block], provider="p", model="m").user("first")
        story.message("toolResult", toolCallId="call_0", toolName="bash", content=[])
        story.assistant(word, provider="p", model="m")
    story.compaction("s", keep=ids(story)[4])
    assert kept(story) == ids(story)[4:]


# --- one line ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        (b'{"id":"a","parentId":"b","x":1}', b'{"id":"a","parentId":"N","x":1}'),
        (b'{ "parentId" : null , "x":1e2 }\r', b'{ "parentId" : "N" , "x":1e2 }\r'),
        (b'{"x":{"parentId":"b"},"parentId":"b"}', b'{"x":{"parentId":"b"},"parentId":"N"}'),
        (b'{"x":"\\"parentId\\":","parentId":"}"}', b'{"x":"\\"parentId\\":","parentId":"N"}'),
        (b'{"parent\\u0049d":"b"}', b'{"parent\\u0049d":"N"}'),
        (b'{"parentId":"b","parentId":"c"}', b'{"parentId":"N","parentId":"N"}'),
        (b'{"t":"\xff\xfe","n":12345678901234567890,"parentId":"b"}',
         b'{"t":"\xff\xfe","n":12345678901234567890,"parentId":"N"}'),
        (b'{"x":["parentId",{"a":[]}],"parentId":"\\u00e9"}',
         b'{"x":["parentId",{"a":[]}],"parentId":"N"}'),
    ],
)  # fmt: skip
def test_only_the_parent_changes(line: bytes, wanted: bytes) -> None:
    assert relinked(line, "N") == wanted
    assert relinked(wanted, None) == wanted.replace(b'"N"', b"null")
    assert same_but_parent(line, wanted)
    assert not same_but_parent(line, wanted.replace(b"{", b'{"more":1,', 1))


def test_a_line_without_a_parent() -> None:
    with pytest.raises(NoParent):
        relinked(b'{"x":{"parentId":1}}', "N")
