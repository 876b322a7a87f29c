"""Half a minute of what `make chaos` does for longer: whatever is broken, nothing is lost, doubled or stuck."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.session import Session

from .campaign import Campaign
from .faults.nemesis import lanes

SEED = int(os.environ.get("CHAOS_SEED", "11"))
SECONDS, GAP = 18.0, 1.0  # of the plan; a slow machine takes longer
KINDS = (
    "kill worker", "pause worker", "crash worker", "kill web", "kill sweeper", "kill program", "stop postgres",
    "kill redis", "flush redis", "cut postgres", "fill disk",
)  # fmt: skip


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder on the disk, with short paths for sockets."""
    made = Path(tempfile.mkdtemp(prefix="hp-chaos-", dir="/tmp"))
    yield made
    shutil.rmtree(made)


def test_a_seed_gives_the_same_faults_and_another_one_others() -> None:
    assert lanes(SEED, 600, 1.5) == lanes(SEED, 600, 1.5)
    assert lanes(SEED, 600, 1.5) != lanes(SEED + 1, 600, 1.5)


@pytest.mark.long
def test_an_installation_under_fire_loses_and_doubles_nothing_and_comes_to_rest(servers: Session, folder: Path) -> None:
    report = Campaign(SECONDS, SEED, folder, servers.migrated.data, KINDS, GAP).run()
    assert report.violations == [], report.counts
    assert report.broken == []
    assert report.counts["faults"]["in all"] == sum(map(len, lanes(SEED, SECONDS, GAP, KINDS)))
    for agent in ("errand", "trip"):
        assert f"{agent} completed" in report.counts["runs"], report.counts
    assert report.counts["requests"]["decide ok"] > 0
