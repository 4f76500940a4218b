"""Trimming as methods of SessionIndex, for whoever has a `Present`.

The access bound holds: what it hides cannot be trimmed, and a refusal does not say whether it is
there. The one exception is the running session's own history, in two steps or as a transcript by
force, because its owner asks. Outside of two steps the running session, and one that was written a
moment ago, need `force`.

After a trim the index follows for that one file; where another writer holds the index it is left to
that one: answers are right either way.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from sessionindex.errors import IndexFolderError, IndexLocked, ParameterError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from sessionindex.present import Present
    from sessionindex.trim.report import Prepared, TrimReport

RECENT_S: Final = 120
"""A session written so shortly ago may be in use."""

CURRENT: Final = "it is the running session"
RECENT: Final = "it was written in the last 2 minutes"


class Trimming:
    """A part of SessionIndex."""

    _present: Present

    def trim(
        self,
        path: str | os.PathLike[str],
        *,
        dry_run: bool = False,
        transcript: bool = False,
        backup: str | os.PathLike[str] | None = None,
        restore: bool = False,
        force: bool = False,
    ) -> TrimReport:
        """Make a session file small without a change of what the model sees; see TrimReport.

        `dry_run` only says what would go. `transcript` rewrites the branch into a new session file.
        `backup` is a folder for the original; with `restore` it is put back from there. `force` is
        needed for the running session and for one written in the last two minutes. What must not be
        trimmed is refused in the report. Raises ParameterError, PolicyError, AccessDenied,
        SessionFileError.
        """
        from sessionindex.trim import steps
        from sessionindex.trim.transcript import rewrite

        if restore and backup is None:
            raise ParameterError("restore needs the folder of the backup")
        if transcript and (restore or backup is not None):
            raise ParameterError("a transcript leaves the session as it is: it takes no backup")
        folder = None if backup is None else os.path.abspath(backup)
        given = os.fspath(path)
        found = self._may_trim(given, exempt=transcript and force)
        refused = _refused(given, found) or (None if force else self._in_use(given, found))
        if refused is not None:
            return refused
        if restore:
            assert folder is not None
            report = steps.restore(found, folder, dry_run=dry_run)
        elif transcript:
            report = steps.guarded(found, lambda: rewrite(found, dry_run=dry_run))
        else:
            report = steps.trim(found, dry_run=dry_run, backup=folder)
        self._followed(report)
        return report

    def at_rest(self, older_than_s: float) -> list[str]:
        """The sessions that the bound shows and nobody has written to for so long."""
        from sessionindex import asking

        policy = self._present.policy()
        limit = time.time_ns() - int(older_than_s * 1e9)
        current = self._present.current()
        return [
            file.path
            for file in asking.catalog_of(self._present, policy, False).files
            if file.found.identity.mtime_ns < limit and file.path != current
        ]

    # --- two steps -------------------------------------------------------------------------------

    def prepare_trim(
        self,
        path: str | os.PathLike[str],
        *,
        leaf: str | None = None,
        project: str | None = None,
        trusted: bool = False,
    ) -> Prepared:
        """The first of two steps, for whoever owns the live session.

        `leaf` is the live leaf. `project` is the folder whose configuration counts if it is
        `trusted`: where `autoAfterCompaction` is off nothing is done, where it is invalid that is
        the reason of a refusal.
        """
        from sessionindex import settings
        from sessionindex.trim import steps
        from sessionindex.trim.report import Prepared, untouched

        given = os.fspath(path)
        found = self._may_trim(given, exempt=True)
        refused = _refused(given, found)
        if refused is not None:
            return Prepared(None, None, 0, refused)
        wanted = settings.auto_trim(project if trusted else None)
        if wanted is not True:
            outcome = "nothing" if wanted is False else "refused"
            reason = wanted or "autoAfterCompaction is off"
            size = os.lstat(found).st_size
            return Prepared(None, None, 0, untouched(found, outcome, reason, size, 0))  # type: ignore[arg-type]
        return steps.prepare(found, leaf)

    def commit_trim(self, token: str) -> TrimReport:
        """The second step: everything is checked again, then the session is replaced."""
        from sessionindex.trim import steps

        named = steps.named(token)
        self._may_trim(named.path, exempt=True)
        report = steps.commit_prepared(named)
        self._followed(report)
        return report

    def discard_trim(self, token: str) -> TrimReport:
        """Take a prepared replacement away."""
        from sessionindex.trim import steps

        named = steps.named(token)
        self._may_trim(named.path, exempt=True)
        return steps.discard(named)

    def clear_trims(self) -> None:
        """Clear what trims that were killed left beside the sessions that the bound shows."""
        from sessionindex import asking
        from sessionindex.trim import steps

        now = asking.catalog_of(self._present, self._present.policy(), True)
        steps.tidy(file.path for file in now.files)

    # --- who may, and what follows ---------------------------------------------------------------

    def _may_trim(self, given: str, *, exempt: bool) -> str:
        """The file without links in its path. `exempt`: the running session is the caller's own."""
        if not os.path.isabs(given):
            given = os.path.abspath(given)
        if exempt and given == self._present.current():
            return os.path.realpath(given)
        return self._present.addressed(given, self._present.policy()).path

    def _in_use(self, given: str, found: str) -> TrimReport | None:
        current = self._present.current()
        size, changed = (stat := os.stat(found)).st_size, stat.st_mtime
        reason = None
        if current is not None and found in (current, os.path.realpath(current)):
            reason = CURRENT
        elif time.time() - changed < RECENT_S:
            reason = RECENT
        return None if reason is None else _told(found, f"{reason}: close it, or use --force", size)

    def _followed(self, report: TrimReport) -> None:
        """Have the index follow; whoever holds it now will see the change itself."""
        if report.outcome != "trimmed" or self._present.reader() is None:
            return
        with suppress(IndexLocked, IndexFolderError):
            self.refresh([report.new_path or report.path])

    if TYPE_CHECKING:  # whoever mixes this in has it

        def refresh(self, paths: Sequence[str] | None = None) -> Any: ...


def _told(path: str, reason: str, size: int) -> TrimReport:
    from sessionindex.trim.report import untouched

    return untouched(path, "refused", reason, size, 0)


def _refused(given: str, found: str) -> TrimReport | None:
    if not os.path.islink(given):
        return None
    return _told(given, "it is a link", os.stat(found).st_size)
