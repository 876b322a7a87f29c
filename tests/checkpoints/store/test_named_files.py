"""A state names its own team's files, whichever way it is saved.

Each door checked what it took in, and two were without: a signal's value and a thread of LangGraph's brought another
team's file into a state by its digest, and a gate handed it out.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.conf import settings

from checkpoints import store
from checkpoints.actors import SYSTEM
from checkpoints.errors import ValueRefused
from checkpoints.layout import payloads, snapshot
from checkpoints.models import Run
from checkpoints.store import Header, named_files, start_and_fork
from checkpoints.values import artifacts
from checkpoints.values.ops import DROP, Append, Splice
from tests.factories.stored_runs import REWIND, STEP, begin, make_plan, make_run, make_team

Reference = dict[str, Any]


def kept(team: int) -> Reference:
    with artifacts.kept_for(team):
        return artifacts.keep(os.urandom(24), "application/pdf")


def theirs() -> Reference:
    return kept(make_team().pk)


def started(file: Reference, **more: Any) -> Run:
    return store.start(
        plan=make_plan(), team=make_team(), title="A run", values={"scan": file}, first_step="one", by=SYSTEM, **more
    )


def begun_waiting(file: Reference) -> None:
    run = Run(plan=make_plan(), team=make_team(), title="A run")
    [number], at, list_format = start_and_fork.new_numbers(1)
    start_and_fork.first_checkpoint(run, number, {"scan": file}, first_step="one", at=at, list_format=list_format)


def saved(file: Reference) -> None:
    _, claim, head = begin(n=0)
    store.save(head, {"scan": file}, claim=claim, header=STEP)


def put_off(file: Reference) -> None:
    _, claim, head = begin(n=0)
    store.defer(head, {"scan": file}, claim=claim, header=STEP)


def moved(file: Reference) -> None:
    _, claim, head = begin(n=0)
    store.save(head, {"n": 1}, claim=claim, header=STEP)
    store.move_head(head, {"scan": file}, claim=claim, header=REWIND)


def forked(file: Reference) -> None:
    _, _, head = begin(n=0)
    store.fork(head.id, by=SYSTEM, writes={"scan": file})


WAYS: dict[Callable[..., Any], str] = {
    started: "start", begun_waiting: "first_checkpoint", saved: "save", put_off: "defer", moved: "move_head",
    forked: "fork",
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS, ids=lambda way: WAYS[way])
def test_no_way_of_saving_takes_another_teams_file(way: Callable[[Reference], None]) -> None:
    file = theirs()
    with pytest.raises(ValueRefused) as refused:
        way(file)
    assert (refused.value.pointer, refused.value.reason) == ("/scan", named_files.FOREIGN)


def test_these_are_all_ways_of_saving() -> None:
    """Nothing else drafts a row that it writes."""
    drafting = {
        f"{path.relative_to(settings.BASE_DIR)}"
        for folder in ("agents", "approvals", "checkpoints", "config")
        for path in (Path(settings.BASE_DIR) / folder).rglob("*.py")
        if re.search(r"import .*\bdraft_row\b|\.draft_row\b", path.read_text())
    }
    assert drafting == {"checkpoints/store/named_files.py"}


def test_wherever_in_a_value_it_is() -> None:
    _, claim, head = begin(items=[0])
    file = theirs()
    for write, at in (
        ({"long": "x" * 5000, "scan": file}, "/items/scan"),
        ([*range(5000), file], "/items/5000"),
        (Append([file]), "/items/0"),
        (Splice(0, 1, [0, file]), "/items/1"),
        ({"$artifact": file["$artifact"].upper(), "size": 24}, "/items"),
        ({"$artifact": 1}, "/items"),
    ):
        with pytest.raises(ValueRefused) as refused:
            store.save(head, {"items": write}, claim=claim, header=STEP)
        assert refused.value.pointer == at


def test_a_file_that_a_step_of_the_team_kept_may_be_named_by_every_run_of_it() -> None:
    run, claim, head = begin(n=0)
    file = kept(run.team_id)
    head = store.save(head, {"scan": file}, claim=claim, header=STEP)
    assert store.load(run).state["scan"] == file
    store.start(plan=run.plan, team=run.team, title="Another", values={"scan": file}, first_step="one", by=SYSTEM)
    with pytest.raises(ValueRefused):
        started(file)
    run, claim, head = begin(n=0)
    mine = kept(run.team_id)
    head = store.save(head, {"scan": mine}, claim=claim, header=STEP)
    with pytest.raises(ValueRefused) as refused:
        store.save(head, {"scan": [mine, theirs()]}, claim=claim, header=Header("step", "one", "one"))
    assert refused.value.pointer == "/scan/1"


def test_a_file_that_the_lineage_named_before_may_be_named_again() -> None:
    """Kept before files were marked, it has no other witness than an earlier checkpoint."""
    run, claim, head = begin(n=0, log=[])
    file = kept(run.team_id)
    large = {"long": "x" * 5000, "scan": file}
    head = store.save(head, {"log": Append([large])}, claim=claim, header=STEP)
    path = artifacts._path(file[artifacts.MARK])
    artifacts._mark(path, run.team_id).unlink()
    for _ in range(70):  # past an anchor, which holds the file anew
        head = store.save(head, {"n": head.seq}, claim=claim, header=STEP)
    head = store.save(head, {"log": DROP}, claim=claim, header=STEP)
    head = store.save(head, {"again": file}, claim=claim, header=STEP)
    fork = store.fork(head.id, by=SYSTEM, team=make_team(), writes={"again": [file]})
    assert store.load(fork).state["again"] == [file]
    child = started(file, parent=run)
    assert store.load(child).state["scan"] == file
    with pytest.raises(ValueRefused):
        started(file, parent=make_run(n=0))


def test_a_digest_that_nobody_has_costs_a_bounded_look_at_the_lineage(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever sent one had every checkpoint and chunk of the lineage read, each time."""
    ids = (UUID(int=number) for number in range(20, 0, -1))  # ids of one millisecond come in any order
    run, claim, head = begin(n=0, log=[])
    monkeypatch.setattr(snapshot, "new_id", lambda: next(ids))
    old, new = kept(run.team_id), kept(run.team_id)
    head = store.save(head, {"scan": old}, claim=claim, header=STEP)
    for number in range(6):
        head = store.save(head, {"n": number, "log": [f"{number}" * 20_000]}, claim=claim, header=STEP)
    head = store.save(head, {"scan": new}, claim=claim, header=STEP)
    for file in (old, new):
        artifacts._mark(artifacts._path(file[artifacts.MARK]), run.team_id).unlink()
    monkeypatch.setattr(named_files, "SEARCHED", 3, raising=False)
    unpack, looked_at = payloads.unpack, list[bytes]()

    def noting(*row: Any) -> bytes:
        looked_at.append(unpack(*row))
        return looked_at[-1]

    monkeypatch.setattr(payloads, "unpack", noting)
    known: dict[str, Any] = {"team": run.team_id, "lineage": run.lineage, "state": None}
    assert named_files.foreign([old], **known) == ["/0"]
    assert len(looked_at) == 6, "three checkpoints and three chunks"
    assert named_files.foreign([new], **known) == []
    assert len(looked_at) == 7, "the newest is looked at first"
