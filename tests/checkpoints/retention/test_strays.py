"""Artifacts that nothing names go; what is named, young or kept again stays, whenever the pruner dies.

What runs of an earlier release kept is their team's too, once the update has marked it.

That release marked no files, so a parent was refused the file that its child had kept before the update, and a step
what its own effect or `once` had returned: a recovery gate, where trying again never helped.
"""

from __future__ import annotations

import os
import time
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from django.core.files.storage import storages

from agents.models import Memo
from checkpoints import crash_points, store
from checkpoints.actors import SYSTEM
from checkpoints.errors import ValueRefused
from checkpoints.layout import payloads
from checkpoints.retention import stray_artifacts
from checkpoints.values import artifacts
from checkpoints.values.canonical_json import encode_canonical
from checkpoints.values.ops import Append
from tests.factories import unique
from tests.factories.stored_runs import STEP, begin, make_plan, make_team
from tests.harness.sent_statements import sent

from .pruned_runs import header, keep, more, pruned

HOUR = timedelta(hours=1)


def kept(words: str, team: int = 0) -> artifacts.Reference:
    with artifacts.kept_for(team):
        return artifacts.keep(words.encode() + os.urandom(8))


def place(reference: artifacts.Reference) -> Path:
    digest = reference[artifacts.MARK]
    return Path(storages["artifacts"].path(f"{digest[:2]}/{digest}"))


def aged(reference: artifacts.Reference, hours: float = 2) -> None:
    then = time.time() - hours * 3600
    for path in (place(reference), *marks(reference)):
        os.utime(path, (then, then))


def marks(reference: artifacts.Reference) -> list[Path]:
    return list(place(reference).parent.glob(f"{place(reference).name}.*"))


def test_what_no_state_names_any_more_goes_and_what_one_names_stays() -> None:
    run, claim, head = begin(messages=[], n=0, doc="")
    lost, named, young = kept("lost", run.team_id), kept("named", run.team_id), kept("young")
    head = store.save(head, {"file": lost}, claim=claim, header=header(2))
    head = store.save(head, {"file": named}, claim=claim, header=header(3))
    head = more(head, claim, 20)
    aged(lost)
    aged(named)
    assert stray_artifacts.remove(grace=HOUR) == 0, "an old checkpoint names it still"
    keep(run, keep_last=5)
    pruned()
    assert stray_artifacts.remove(grace=HOUR) > 0
    assert [place(each).exists() for each in (lost, named, young)] == [False, True, True]
    assert [len(marks(each)) for each in (lost, named, young)] == [0, 1, 1]
    assert artifacts.read(store.load(run).state["file"])


def test_what_a_prune_moves_to_a_later_row_while_files_are_looked_for_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """All was read in one statement, which a large table's bound on statements ends; each slice sees its own moment."""
    mark = unique("mark")
    run, claim, head = begin(messages=[], n=0, doc=mark)
    named = kept("named once, at the beginning", run.team_id)
    head = store.save(head, {"file": named}, claim=claim, header=header(2))
    more(head, claim, 30)
    keep(run, keep_last=5)
    aged(named)
    monkeypatch.setattr(stray_artifacts, "AT_ONCE", 1)
    unpack = payloads.unpack
    prunes: list[int] = []

    def unpacking(codec: int, data: bytes) -> bytes:
        content = unpack(codec, data)
        if not prunes and mark.encode() in content:  # the row before the one that names it
            prunes.append(run.pk)
            pruned()  # which writes a later row anew, with all that stands
        return content

    monkeypatch.setattr(payloads, "unpack", unpacking)
    with sent() as statements:
        stray_artifacts.remove(grace=HOUR)
    assert place(named).exists()
    assert prunes
    monkeypatch.undo()
    reading = [each for each in statements if each.lstrip().startswith("SELECT run_id, seq, codec")]
    assert len(reading) > 1
    assert all("LIMIT" in each for each in reading)


def test_what_only_a_memo_names_stays() -> None:
    run, _, head = begin(n=0)
    named = kept("named by a memo")
    Memo.objects.create(
        run=run, base=head.id, step="one", name="x", digest=b"d", result=encode_canonical({"made": named}), token=1
    )
    aged(named)
    stray_artifacts.remove(grace=HOUR)
    assert place(named).exists()


def test_what_is_kept_again_is_young_again() -> None:
    content = os.urandom(20)
    first = artifacts.keep(content)
    aged(first)
    artifacts.keep(content)
    stray_artifacts.remove(grace=HOUR)
    assert place(first).exists()


def test_a_team_that_keeps_a_file_again_has_it_still(monkeypatch: pytest.MonkeyPatch) -> None:
    """Removed with its file, the mark of a team that kept the same content at that moment would be missing."""
    content, team = os.urandom(20), 7
    with artifacts.kept_for(team):
        first = artifacts.keep(content)
        aged(first)
        unlink = Path.unlink

        def unlinked(path: Path, missing_ok: bool = False) -> None:
            unlink(path, missing_ok)
            if path.name == place(first).name:  # the file is gone, and its mark is looked at next
                artifacts.keep(content)

        monkeypatch.setattr(Path, "unlink", unlinked)
        stray_artifacts.remove(grace=HOUR)
    monkeypatch.undo()
    assert artifacts.read(first) == content
    assert artifacts.kept_by(team, [first[artifacts.MARK]])


def test_what_is_kept_again_while_it_is_being_removed_comes_back() -> None:
    content = os.urandom(20)
    first = artifacts.keep(content)
    aged(first)
    rename = Path.rename

    def renamed(path: Path, to: Path) -> Any:
        if stray_artifacts.ASIDE in str(to):
            artifacts.keep(content)  # after it was looked at, before it is put aside
        return rename(path, to)

    with mock.patch.object(Path, "rename", renamed):
        stray_artifacts.remove(grace=HOUR)
    assert artifacts.read(first) == content


def test_a_pruner_that_dies_after_putting_files_aside_loses_none_that_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    run, claim, head = begin(n=0)
    named, lost = kept("named", run.team_id), kept("lost")
    aged(named)
    aged(lost)
    for mark in marks(named):  # or it may be put aside first, and then nobody may name the file
        mark.touch()

    def die(name: str, step: str = "", value: Any = None) -> None:
        if name == "artifact_aside" and step in {place(named).name, place(lost).name}:
            raise crash_points.Crashed

    monkeypatch.setattr(crash_points, "point", die)
    for _ in range(8):  # other tests' files come first
        with pytest.raises(crash_points.Crashed):
            stray_artifacts.remove(grace=HOUR)
        if not place(named).exists():
            break
    monkeypatch.undo()
    artifacts_there = [place(each).exists() for each in (named, lost)]
    assert not all(artifacts_there)
    store.save(head, {"file": named}, claim=claim, header=header(2))
    stray_artifacts.remove(grace=HOUR)
    assert place(named).exists()
    assert not place(lost).exists()


def test_the_memos_of_a_removed_checkpoint_go_with_it_and_the_others_stay() -> None:
    run, claim, head = begin(messages=[], n=0, doc="")
    head = more(head, claim, 30)
    bases = {each.seq: each.id for each in run.checkpoints.all()}
    for seq in (5, 31):
        Memo.objects.create(run=run, base=bases[seq], step="one", name="x", digest=b"d", result=b"1", token=1)
    keep(run, keep_last=5)
    pruned()
    assert list(Memo.objects.filter(run=run).values_list("base", flat=True)) == [bases[31]]


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
