"""A file and its replacement, proved to be the same to the model, or refused.

Both are read from the disk as they are now, what was appended to them included; the plan is not
believed: the lines are compared, and what Pi would build from either (`verify`).
"""

from __future__ import annotations

from sessionindex.trim import verify
from sessionindex.trim.beside import Replacement
from sessionindex.trim.outline import BROKEN, RESULT, Outline
from sessionindex.trim.plan import Plan, Refusal
from sessionindex.trim.writing import grown, same_lines, scanned, values


def proved(
    outline: Outline, plan: Plan, source: int, size: int, new: Replacement
) -> tuple[int, int, int]:
    """Entries before and after, and lines appended since the outline. Raises Refusal.

    `size` is how much of the source is in the replacement, its appended lines included.
    """
    before = grown(outline, source, size)
    after = grown(scanned(new.reader, new.size), new.reader, new.size)
    carried = len(before) - len(outline)
    _appended_is_sound(before, len(outline), plan)
    if not same_lines(outline, plan, source, after, new.reader):
        raise Refusal("the replacement is not what was planned")
    _same(before, source, after, new)
    return before.entries(), after.entries(), carried


def restored(source: int, size: int, new: Replacement) -> tuple[int, int]:
    """Entries before and after of a file and the whole one it was trimmed from. Raises Refusal."""
    before = grown(scanned(source, size), source, size)
    after = grown(scanned(new.reader, new.size), new.reader, new.size)
    _same(before, source, after, new, grown=True)
    return before.entries(), after.entries()


def _appended_is_sound(before: Outline, known: int, plan: Plan) -> None:
    if len(before) == known:
        return
    ids = set(before.ids[:known])
    gone = {before.ids[row] for row in range(known) if plan.drops(row)}
    calls: tuple[set[int], set[int]] = set(), set()  # of what stays, of what goes
    for call, row in zip(before.calls, before.calling, strict=True):
        calls[plan.drops(row)].add(call)
    for row in range(known, len(before)):
        if before.parents[row] in gone or before.targets[row] in gone:
            raise Refusal("an appended line refers to dropped history")
        if before.flags[row] & RESULT and before.targets[row] in calls[1] - calls[0]:
            raise Refusal("an appended tool result would be separated from its call")
        if before.ids[row] and before.ids[row] in ids:
            raise Refusal("an appended line has an id that is taken")
        if before.flags[row] & BROKEN:
            raise Refusal("an appended message entry has no message")
        ids.add(before.ids[row])


def _same(
    before: Outline, source: int, after: Outline, new: Replacement, *, grown: bool = False
) -> None:
    try:
        found = verify.differences(
            before, values(before, source), after, values(after, new.reader), grown=grown
        )
    except verify.Unseen as unseen:
        raise Refusal(f"the context cannot be built: {unseen}") from unseen
    if found:
        raise Refusal(f"the model would see something else: {', '.join(found)}")
