"""What runs of an earlier release kept is their team's too, once the update has marked it.

That release marked no files, so a parent was refused the file that its child had kept before the update, and a step
what its own effect or `once` had returned: a recovery gate, where trying again never helped.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.core.files.storage import storages

from agents.models import Memo
from checkpoints import store
from checkpoints.actors import SYSTEM
from checkpoints.errors import ValueRefused
from checkpoints.retention import stray_artifacts
from checkpoints.values.canonical_json import encode_canonical
from checkpoints.values.ops import Append
from tests.checkpoints.retention.test_strays import kept, marks, place
from tests.factories.stored_runs import STEP, begin, make_plan, make_team

Reference = dict[str, Any]


@pytest.fixture
def _updated() -> None:
    """No update has marked anything yet."""
    Path(storages["artifacts"].path(stray_artifacts._MARKED)).unlink(missing_ok=True)


def kept_before(team: int) -> Reference:
    """A file as an earlier release kept it."""
    file = kept("before", team)
    for mark in marks(file):
        mark.unlink()
    return file


def started(file: Any, *, team: Any) -> None:
    store.start(plan=make_plan(), team=team, title="A run", values={"scan": file}, first_step="one", by=SYSTEM)


@pytest.mark.usefixtures("_updated")
def test_what_a_child_kept_before_the_update_its_parent_may_name() -> None:
    child, claim, head = begin(n=0, log=[])
    plain, long = (kept(name, child.team_id) for name in ("plain", "long"))
    head = store.save(head, {"log": Append([plain])}, claim=claim, header=STEP)
    store.save(head, {"log": Append([["x" * 20_000], long])}, claim=claim, header=STEP)
    for mark in (*marks(plain), *marks(long)):
        mark.unlink()
    with pytest.raises(ValueRefused):
        started(plain, team=child.team)
    assert stray_artifacts.mark_files() >= 2
    started([plain, long], team=child.team)
    with pytest.raises(ValueRefused):
        started(plain, team=make_team())


@pytest.mark.usefixtures("_updated")
def test_what_a_step_returned_before_the_update_it_may_save() -> None:
    run, claim, head = begin(n=0)
    file = kept_before(run.team_id)
    Memo.objects.create(
        run=run,
        base=head.id,
        step="one",
        name="scan",
        digest=b"d",
        result=encode_canonical({"scan": file}),
        token=claim.token,
    )
    stray_artifacts.mark_files()
    assert [each.name for each in marks(file)] == [f"{place(file).name}.{run.team_id}"]
    store.save(head, {"scan": file}, claim=claim, header=STEP)


@pytest.mark.usefixtures("_updated")
def test_it_is_done_once_and_again_at_the_end_of_the_update() -> None:
    stray_artifacts.mark_files()
    run, claim, head = begin(n=0)
    late = kept("by an old process", run.team_id)
    store.save(head, {"scan": late}, claim=claim, header=STEP)
    for mark in marks(late):
        mark.unlink()
    assert stray_artifacts.mark_files() == 0
    assert not marks(late)
    assert stray_artifacts.mark_files(again=True) >= 1
    assert len(marks(late)) == 1
    assert stray_artifacts.mark_files(again=True) == 0
