"""The bound: which lists are valid, and which working directories they admit."""

import pytest

from sessionindex.access import Policy, belongs, policy, project_name
from sessionindex.errors import PolicyError

MESSAGE = "piRetrospect.allowedProjects is not a valid project allowlist"


def bound(names: object) -> Policy:
    return policy({"piRetrospect": {"allowedProjects": names}})


@pytest.mark.parametrize(
    ("rule", "settings"),
    [
        ("no namespace", {}),
        ("other settings do not matter", {"theme": "dark"}),
        ("no key", {"piRetrospect": {}}),
        ("another key", {"piRetrospect": {"markSteeringMessages": True}}),
        ("the wildcard alone", {"piRetrospect": {"allowedProjects": ["*"]}}),
        ("the wildcard beside names", {"piRetrospect": {"allowedProjects": ["bar", "*"]}}),
        (
            "the wildcard is read before the other items are checked",
            {"piRetrospect": {"allowedProjects": ["*", 5, "a/b"]}},
        ),
        (
            "also when a broken item comes first",
            {"piRetrospect": {"allowedProjects": [None, "", "*"]}},
        ),
    ],
)
def test_no_bound(rule: str, settings: object) -> None:
    """Absent, or lifted by "*": every project, even one without a name."""
    unbound = policy(settings)
    assert unbound == Policy(None), rule
    assert not unbound.is_bound
    assert unbound.admits("/repo/bar")
    assert unbound.admits("/")
    assert unbound.admits("")


@pytest.mark.parametrize(
    ("rule", "settings"),
    [
        ("settings null", None),
        ("settings a list", []),
        ("settings a string", "bar"),
        ("settings a number", 5),
        ("namespace null", {"piRetrospect": None}),
        ("namespace a list", {"piRetrospect": []}),
        ("namespace a string", {"piRetrospect": "bar"}),
        ("namespace a number", {"piRetrospect": 0}),
        ("namespace false", {"piRetrospect": False}),
        ("key null", {"piRetrospect": {"allowedProjects": None}}),
        ("key a string", {"piRetrospect": {"allowedProjects": "bar"}}),
        ("key the wildcard without a list", {"piRetrospect": {"allowedProjects": "*"}}),
        ("key an object", {"piRetrospect": {"allowedProjects": {"*": True}}}),
        ("key a number", {"piRetrospect": {"allowedProjects": 5}}),
        ("key true", {"piRetrospect": {"allowedProjects": True}}),
    ],
)
def test_unreadable_bound(rule: str, settings: object) -> None:
    """A bound that cannot be read is never read as no bound."""
    with pytest.raises(PolicyError) as refused:
        policy(settings)
    assert str(refused.value) == MESSAGE, rule


@pytest.mark.parametrize(
    "item", ["", ".", "..", "/", "a/b", "/bar", "bar/", "\\", "a\\b", 5, None, True, [], ["*"], {}]
)
def test_invalid_item(item: object) -> None:
    """One bad item spoils the list, wherever it stands."""
    for names in ([item], ["bar", item], [item, "bar"]):
        with pytest.raises(PolicyError, match=MESSAGE):
            bound(names)


@pytest.mark.parametrize("name", ["...", " ", "**", "b*", "bar ", ".bar", "-", "bar-", "é", "~"])
def test_literal_item(name: str) -> None:
    """Everything else is a literal name; a star inside is an ordinary character."""
    allowed = bound([name])
    assert allowed == Policy((name,))
    assert allowed.is_bound
    assert allowed.admits(f"/repo/{name}")
    assert not allowed.admits("/repo/bar2")


@pytest.mark.parametrize(
    ("cwd", "name"),
    [
        ("/repo/bar", "bar"),
        ("/repo/bar/", "bar"),
        ("/repo/bar//", "bar"),
        ("/repo//bar", "bar"),
        ("bar", "bar"),
        ("/bar", "bar"),
        ("/", ""),
        ("//", ""),
        ("", ""),
        ("/repo/bar/..", ".."),
        ("/repo/bar/.", "."),
        ("/repo/bar ", "bar "),
        ("/repo/bar\n", "bar\n"),
        ("C:\\repo\\bar", "C:\\repo\\bar"),
        ("/repo/bar\\", "bar\\"),
    ],
)
def test_project_name(cwd: str, name: str) -> None:
    """The last segment after trailing slashes; only "/" separates, nothing is resolved."""
    assert project_name(cwd) == name


@pytest.mark.parametrize(
    ("cwd", "names", "admitted"),
    [
        ("/Users/me/bar", ["bar"], True),
        ("/Users/me/bar-issue-7", ["bar"], True),
        ("/Users/me/bar-", ["bar"], True),
        ("/Users/me/bar-", ["bar-"], True),
        ("/Users/me/bar", ["bar-"], False),
        ("/Users/me/bar-x", ["bar-"], False),
        ("/Users/me/barista", ["bar"], False),
        ("/Users/me/bar_x", ["bar"], False),
        ("/Users/me/Bar", ["bar"], False),
        ("/Users/me/bar", ["Bar"], False),
        ("/Users/me/bar/", ["bar"], True),
        ("/Users/bar/sub", ["bar"], False),
        ("/Users/bar-x/sub", ["bar"], False),
        ("/other/api", ["api"], True),
        ("bar", ["bar"], True),
        ("C:\\repo\\bar", ["bar"], False),
        ("/repo/bar/..", ["bar", "repo"], False),
        ("/repo/foo-bar", ["bar"], False),
        ("/repo/baz", ["bar", "baz"], True),
        ("/repo/baz-1", ["bar", "baz"], True),
        ("/repo/bar", [], False),
        ("/", ["bar"], False),
        ("", ["bar"], False),
        ("/", [], False),
        ("/repo/*", ["**"], False),
        ("/repo/barrel", ["b*"], False),
    ],
)
def test_matching(cwd: str, names: list[str], admitted: bool) -> None:
    """Equal, or continued with "-"; lexical and case-sensitive; a nameless project never."""
    assert bound(names).admits(cwd) is admitted
    assert belongs(cwd, names) is admitted


def test_an_empty_list_is_a_decision() -> None:
    """[] admits nothing, and is a bound."""
    nothing = bound([])
    assert nothing == Policy(())
    assert nothing.is_bound
    assert not nothing.admits("/repo/bar")


def test_a_nameless_project_belongs_to_no_name() -> None:
    """ "" never matches, not even a filter that were empty itself."""
    assert not belongs("/", [""])
