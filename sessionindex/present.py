"""A sessions root at this moment: settings and bound, the open index, the catalog.

Everything is read anew for every call but the open index, which is kept until the next commit or
generation replaces it. An index that fails while it is read is given up at once: its error is
remembered until the index changes, and the next refresh begins a new generation.

Which sessions a caller may name is decided here, for every operation: inside the root, there, and
within the bound; with a bound, a refusal never says whether a path exists.
"""

from __future__ import annotations

import os
import time
from _thread import allocate_lock  # `threading` would be a fiftieth of a short search
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sessionindex import catalog, layout, settings
from sessionindex.access import Policy
from sessionindex.catalog import Catalog
from sessionindex.errors import (
    AccessDenied,
    IndexFolderError,
    IndexUnusable,
    RootError,
    SessionFileError,
    SessionIndexError,
)
from sessionindex.index.record import Record
from sessionindex.index.snapshot import Snapshot
from sessionindex.index.store import Store
from sessionindex.layout import Found, Survey
from sessionindex.selection import named_path

if TYPE_CHECKING:
    from sessionindex.address import Address
    from sessionindex.index.reader import Reader
    from sessionindex.standing import Standing


def _is_sound(path: str) -> bool:
    """Whether a path can be opened and written down: UTF-8, without NUL."""
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return "\0" not in path


def is_path(name: str) -> bool:
    """Whether a session's name is a path rather than an id."""
    return "/" in name or name.endswith(layout.SUFFIX)


class _Open:
    """The open index, shared by all who look at one root through one SessionIndex."""

    def __init__(self) -> None:
        self.lock = allocate_lock()
        self.reader: tuple[object, Reader] | None = None
        self.damage: tuple[object, SessionIndexError] | None = None
        self.known: Snapshot | None = None
        self.ahead: Snapshot | None = None  # loaded before there was a reader
        self.asked = False
        self.standing: Standing | None = None  # from the second question on


class Present:
    """One root as seen by one SessionIndex; safe to use from several threads."""

    def __init__(
        self,
        sessions_root: str | None,
        flat: bool | None,
        index_dir: str | None,
        given_settings: Mapping[str, Any] | None,
        current_session: str | None,
    ) -> None:
        self.root = settings.find_root(sessions_root)
        if not _is_sound(self.root.path):
            shown = os.fsencode(self.root.path).decode("utf-8", "replace").replace("\0", "\ufffd")
            raise RootError(
                f"the sessions root has no name that can be used: {shown}"
                f" (from {self.root.source})",
                self.root.path,
                self.root.source,
            )
        home = settings.index_home(index_dir)
        if not _is_sound(home):
            raise IndexFolderError("the index folder has no name that can be used", home)
        self.store = Store(home, self.root.path)
        self._flat = flat
        self._settings = given_settings
        self._current = current_session
        self._within: tuple[str, ...] | None = None
        self._open = _Open()

    def seen_by(
        self,
        given_settings: Mapping[str, Any] | None,
        current_session: str | None,
        within: tuple[str, ...] | None,
    ) -> Present:
        """The same root and open index for another caller; None is as it is here."""
        import copy

        view = copy.copy(self)
        if given_settings is not None:
            view._settings = given_settings
        if current_session is not None:
            view._current = current_session
        if within is not None:
            view._within = within
        return view

    def policy(self) -> Policy:
        """The access bound now; raises PolicyError."""
        return settings.read(self._settings).policy()._replace(within=self._within)

    def current(self) -> str | None:
        """The running session's file, as text, or None."""
        return settings.current_session(self._current)

    def is_flat(self) -> bool:
        if self._flat is not None:
            return self._flat
        return layout.is_flat(self.root.path) if self.root.flat is None else self.root.flat

    # --- the index -------------------------------------------------------------------------------

    def checked_reader(self) -> Reader:
        """The newest commit; raises IndexUnusable and IndexFolderError where there is none."""
        with self._open.lock:
            state = self.store.state()
            if self._open.damage is not None and self._open.damage[0] == state:
                raise self._open.damage[1]
            self._open.damage = None
            while self._open.reader is None or self._open.reader[0] != state:
                self._open.reader = None
                try:
                    self._open.reader = (state, self._opened(state))
                except IndexUnusable:
                    # A segment may have been replaced under our eyes: then look again.
                    state, before = self.store.state(), state
                    if state == before:
                        raise
            return self._open.reader[1]

    def _opened(self, state: object) -> Reader:
        from sessionindex.index.reader import Reader

        index, store, root = self.store.open(), self.store, self.root.path

        def known() -> Snapshot | None:
            # The index was opened after its state was asked: it may be a newer one.
            if not same:
                return None
            ahead, self._open.ahead = self._open.ahead, None
            if ahead is not None and (ahead.state, ahead.zone) == (state, time.tzname):
                return ahead
            return store.snapshot(state, root)

        reader = Reader(index, root, known)
        same = store.state() == state
        return reader

    def look_ahead(self) -> None:
        """Have the stats of the next question taken while this process still imports.

        They count where the index is then in the state in which its snapshot is read now.
        """
        try:
            policy = self.policy()
            known = (
                None if policy.is_bound else self.store.snapshot(self.store.state(), self.root.path)
            )
        except SessionIndexError:
            return  # the question will say so
        if known is None or known.survey is None:
            return
        from sessionindex.standing import Standing

        standing = Standing()
        with self._open.lock:
            if self._open.standing is not None or self._open.reader is not None:
                return
            self._open.ahead, self._open.standing = known, standing
        standing.look_ahead(
            self.root.path, policy=policy, records=known.records, survey=known.survey
        )

    def reader(self) -> Reader | None:
        """The newest commit, or None: then the files alone answer."""
        try:
            return self.checked_reader()
        except SessionIndexError:
            return None

    def damage(self) -> SessionIndexError | None:
        """Why there is no index to read from now; None where there is one."""
        try:
            self.checked_reader()
        except SessionIndexError as error:
            return error
        return None

    def give_up(self, error: SessionIndexError | None) -> None:
        """Remember that the index cannot be read; None forgets it."""
        with self._open.lock:
            self._open.damage = (self.store.state(), error) if error else None
            self._open.reader = None

    def snapshot(self) -> Snapshot | None:
        """What is known of the files at the state of the index that was last seen."""
        with self._open.lock:
            if self._open.reader is None:
                return self._open.known
            state, reader = self._open.reader
        try:
            return reader.snapshot() or Snapshot(state, time.tzname, reader.records())
        except SessionIndexError as error:  # whoever refreshes reads it anew, or begins anew
            self.give_up(error)
            return None

    def renew(self, known: Snapshot | None) -> None:
        """Open the index again when it is asked; `known` is what a refresh left behind."""
        self.give_up(None)
        with self._open.lock:
            self._open.known = known

    @property
    def is_given_up(self) -> bool:
        with self._open.lock:
            return self._open.damage is not None and self._open.damage[0] == self.store.state()

    # --- the sessions ----------------------------------------------------------------------------

    def catalog(
        self, policy: Policy, reader: Reader | None, *, headers_only: bool = False
    ) -> Catalog:
        """Every session that the bound admits, with what the index covers of it."""
        how: dict[str, Any] = {"flat": self.is_flat(), "policy": policy}
        if reader is None:
            return catalog.take(self.root.path, **how, records={}, headers_only=headers_only)
        how |= {"records": reader.records(), "headers_only": headers_only}
        snapshot = reader.snapshot()
        standing = self._standing(snapshot and snapshot.survey)
        if standing is None:
            return catalog.take(self.root.path, **how)
        return standing.take(self.root.path, **how, survey=snapshot and snapshot.survey)

    def walked(self, policy: Policy, records: Mapping[str, Record]) -> Catalog:
        """The same from a walk of the root, whatever is known of an earlier one."""
        return catalog.take(self.root.path, flat=self.is_flat(), policy=policy, records=records)

    def _standing(self, survey: Survey | None) -> Standing | None:
        """What may know that an earlier walk still stands: none for a first question without."""
        with self._open.lock:
            first, self._open.asked = not self._open.asked, True
            if self._open.standing is None and (survey is not None or not first):
                from sessionindex.standing import Standing

                self._open.standing = Standing()
            return self._open.standing

    def confined(self, path: str, policy: Policy) -> str:
        """A path that a caller gave, as the catalog spells it; raises SessionFileError.

        With a bound, a link inside the root that leads out of it is refused like what is hidden.
        """
        try:
            inside = named_path(self.root.path, path)
        except (OSError, ValueError):
            inside = None
        if inside is not None:
            return inside
        from sessionindex import address

        if policy.is_bound and address.is_below(self.root.path, path):
            raise AccessDenied
        raise SessionFileError(f"sessionPath is not under the sessions root: {path}", path)

    def addressed(self, path: str, policy: Policy) -> Address:
        """The file at an absolute path, whatever its name; may raise as `address.find`."""
        from sessionindex import address

        return address.find(self.root.path, path, flat=self.is_flat(), policy=policy)

    def spelled(self, path: str) -> str:
        """A file or folder as the catalog spells it, where it lies in the root; else as given."""
        try:
            return named_path(self.root.path, path) or os.path.normpath(path)
        except (OSError, ValueError):
            return path

    def known(self, path: str, now: Catalog, policy: Policy) -> Found:
        """The session at a confined path; raises AccessDenied and SessionFileError."""
        for file in now.files:
            if file.path == path:
                return file.found
        if policy.is_bound:
            raise AccessDenied
        there = os.path.exists(path)
        reason = "not a session of this root" if there else "ENOENT: no such file"
        raise SessionFileError(f"could not read session file: {reason}: {path}", path)

    def find(self, name: str, now: Catalog, policy: Policy) -> Found:
        """A session by its path, its id, or a beginning of its id that is unique."""
        if is_path(name):
            try:
                path = os.path.abspath(name)
            except OSError:  # the working directory is gone
                path = name
            return self.known(self.confined(path, policy), now, policy)
        exact = [file.found for file in now.files if file.found.session.id == name]
        some = exact or [f.found for f in now.files if f.found.session.id.startswith(name)]
        if len(some) == 1:
            return some[0]
        if not some:
            raise SessionFileError(f"no session with the id {name}", name)
        listed = "".join(f"\n  {found.path}" for found in some[:20])
        raise SessionFileError(f"{len(some)} sessions have an id like {name}:{listed}", name)
