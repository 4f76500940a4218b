"""sessionindex: everything ever said in Pi sessions, found at once and exactly.

*layout finds files, jsonline splits bytes, entry understands them, the index remembers where, a
view asks, the file answers.*
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sessionindex.errors import SessionIndexError
    from sessionindex.library import SessionIndex

__all__ = ["SessionIndex", "SessionIndexError", "__version__"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used: a shell that needs one part pays for one part."""
    if name == "SessionIndexError":
        from sessionindex.errors import SessionIndexError

        return SessionIndexError
    if name == "SessionIndex":
        from sessionindex.library import SessionIndex

        return SessionIndex
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
