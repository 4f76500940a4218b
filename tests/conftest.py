"""What every test has: a scratch store that is looked over when the test ends."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pi_home
import pytest
from hypothesis import HealthCheck, settings
from pi_rpc import Place
from scratch import Store, settle

settings.register_profile(
    "suite",
    derandomize=True,
    deadline=None,
    max_examples=100,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile(
    "soak",
    deadline=None,
    max_examples=5000,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "suite"))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    root = tmp_path / "sessions"
    root.mkdir()
    store = Store(root, tmp_path / "index")
    yield store
    try:
        settle(store)
    finally:
        for index in store.opened:
            index.close()


@pytest.fixture(scope="session")
def pi() -> pi_home.Installed:
    """The real Pi; a test that needs it is skipped where it cannot be had."""
    try:
        return pi_home.ready()
    except pi_home.Missing as missing:
        pytest.skip(str(missing))


@pytest.fixture
def place(pi: pi_home.Installed, tmp_path: Path) -> Place:
    """The home of somebody who has Pi, sessionindex in it, and past sessions: the sample."""
    place = Place(pi, tmp_path / "home")
    place.past()
    place.install()
    return place
