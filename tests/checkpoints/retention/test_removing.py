"""What is left after a prune is exactly what was there, its report agrees with itself, and stray files go."""

from __future__ import annotations

import json
import os
import time
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any
from unittest import mock
from uuid import UUID

import pytest
from bs4 import BeautifulSoup
from django.core.files.storage import storages
from django.core.management import call_command
from django.db.models import Sum
from django.db.models.functions import Now
from django.template.defaultfilters import filesizeformat
from django.test import Client

from agents.models import Memo
from agents.session.run_path import RunPath
from checkpoints import crash_points, store, tasks
from checkpoints.actors import SYSTEM, Actor
from checkpoints.audit.verify_runs import verify_run
from checkpoints.errors import NotVerified, ValueRefused
from checkpoints.layout import payloads
from checkpoints.models import Checkpoint, Chunk, Event, Gap, Prune, PruneLine, RetentionPolicy, Run
from checkpoints.retention import delete_batch, prune_report, prunes, reading, stray_artifacts
from checkpoints.runs import holds
from checkpoints.store import executions
from checkpoints.store.loading import CheckpointHeader
from checkpoints.values import artifacts
from checkpoints.values.canonical_json import decode_canonical, encode_canonical
from checkpoints.values.ops import Append
from tests.agents.pages.test_run_page import text_of
from tests.factories import make_user, unique
from tests.factories.stored_runs import STEP, begin, make_plan, make_team
from tests.harness.sent_statements import sent
from tests.harness.signed_in_clients import signed_in

from .pruned_runs import at, ended, header, keep, looked, more, ordered, pruned, seqs

ANN = Actor("user:7", "Ann")
HOUR = timedelta(hours=1)


def test_the_newest_stay_with_their_states_and_the_rest_is_a_gap_that_an_event_tells_of() -> None:
    run = ended(200)
    chunks = Chunk.objects.filter(lineage=run.pk).count()
    writes = executions.writes_of([at(run, seq) for seq in range(182, 201)])
    before = {seq: store.load_checkpoint(at(run, seq)) for seq in (182, 183, 190, 201)}
    policy = keep(run, keep_last=20)
    prune = pruned()
    assert seqs(run) == list(range(182, 202))
    assert [(gap.first_seq, gap.last_seq) for gap in run.gaps.all()] == [(1, 181)]
    for seq, snapshot in before.items():
        after = store.load_checkpoint(at(run, seq))
        assert (after.state, after.digest, after.fields) == (snapshot.state, snapshot.digest, snapshot.fields)
    assert verify_run(run) == []
    assert (prune.removed, prune.status) == (181, Prune.Status.DONE)
    assert prune.freed > 0
    assert 0 < Chunk.objects.filter(lineage=run.pk).count() < chunks
    assert executions.writes_of(list(writes)) == writes
    [event] = Event.objects.filter(run_id=run.pk, kind="retention.pruned")
    assert decode_canonical(bytes(event.data)) == {
        "first": 1, "last": 181, "count": 181, "policy": run.plan.agent, "version": policy.version, "gap": 1,
        "digest": bytes(Gap.objects.get(run=run).digest).hex(),
    }  # fmt: skip


def test_the_path_and_the_history_are_whole_although_the_rows_are_gone() -> None:
    run = ended(150)
    head = run.head
    assert head
    path, ran = executions.path(head), executions.executions(run.pk)
    places = RunPath.to(head)
    keep(run, keep_last=10)
    pruned()
    gone = [each for each in executions.path(head) if each.removed]
    assert [each.seq for each in gone] == list(range(1, 142))
    assert [strip(each) for each in executions.path(head)] == [strip(each) for each in path]
    assert [strip(each) for each in executions.executions(run.pk)] == [strip(each) for each in ran]
    assert [strip(each) for each in RunPath.to(head)] == [strip(each) for each in places]


def strip(header: CheckpointHeader) -> CheckpointHeader:
    return header._replace(removed=False)


def test_the_command_says_what_would_go_and_removes_it() -> None:
    run = ended(60)
    keep(run, keep_last=20)
    said = StringIO()
    call_command("prune", "--dry-run", stdout=said)
    assert f"R-{run.pk} ({run.plan.agent}): 41 go (1 to 41)" in said.getvalue()
    assert "Nothing was removed." in said.getvalue()
    assert len(seqs(run)) == 61
    line = looked().lines.get(run=run)
    assert (line.checkpoints, line.ranges) == (41, [[1, 41]])
    assert line.size > 0
    said = StringIO()
    call_command("prune", "--json", stdout=said)
    told = json.loads(said.getvalue())
    assert (told["status"], told["removed"]) == ("done", 41)
    assert len(seqs(run)) == 20


def order(prune: Prune) -> Prune:
    prunes.order(prune, seen=bytes(prune.digest), by=SYSTEM)
    return prune


def reported(prune: Prune) -> tuple[str, Client]:
    client = signed_in(make_user("Root", superuser=True))
    return client.get(f"/admin/checkpoints/prune/{prune.pk}/change/").content.decode(), client


def table(page: str) -> list[list[str]]:
    found = BeautifulSoup(page, "html.parser").find("h2", string="By agent")
    assert found is not None
    rows: Any = found.find_next("table")
    return [[cell.get_text(strip=True) for cell in row.select("th, td")] for row in rows.select("tbody tr")]


def agrees(prune: Prune) -> None:
    """Everything that the prune's rows say adds up."""
    prune.refresh_from_db()
    for line in prune.lines.all():
        assert line.checkpoints == line.removed + sum(count for _, _, count in line.stayed), line
    sums = prune.lines.aggregate(shown=Sum("checkpoints"), removed=Sum("removed"), freed=Sum("freed"))
    assert (sums["shown"], sums["removed"]) == (prune.checkpoints, prune.removed)
    assert sums["freed"] + prune_report.files(prune) == prune.freed
    assert sum(each.checkpoints for each in prune_report.kept_after_all(prune)) == prune.kept_after_all


def test_what_a_new_hold_kept_is_in_every_number_and_named() -> None:
    """It said "5 stayed after all: they were held, moved or used", and below that nothing was held."""
    run, other = ended(60), ended(60)
    keep(run, keep_last=20), keep(other, keep_last=20)
    prune = looked()
    for seq in (7, 8, 9):
        holds.hold(run, seq, "Lawsuit 12/26", by=SYSTEM)
    assert prunes.apply(order(prune))
    agrees(prune)
    page, _ = reported(prune)
    said = text_of(page)
    assert said.count(f"1 of R-{run.pk} : legal hold “Lawsuit 12/26” (Holdpoint)") == 3
    assert "3 by legal hold" in said
    rows = {row[0]: row[1:] for row in table(page)}
    line, beside = prune.lines.get(run=run), prune.lines.get(run=other)
    assert rows[run.plan.agent] == ["1", "41", filesizeformat(line.size), "38", "3", filesizeformat(line.freed)]
    assert rows[other.plan.agent] == ["1", "41", filesizeformat(beside.size), "41", "0", filesizeformat(beside.freed)]


def test_what_a_stop_left_says_so_and_what_was_not_recorded_is_counted_all_the_same() -> None:
    run = ended(60)
    keep(run, keep_last=20)
    prune = ordered()
    prunes.stop(prune, by=SYSTEM)
    page, client = reported(prune)
    assert f"41 of R-{run.pk} : the prune was stopped before it reached them" in text_of(page)
    PruneLine.objects.filter(prune=prune).update(done=True)  # as lines are that were applied before reasons were kept
    again = text_of(client.get(f"/admin/checkpoints/prune/{prune.pk}/change/").content.decode())
    assert "41 of the 41 checkpoints of the dry run are kept: 41 of R-" in again
    assert RetentionPolicy.objects.filter(agent=run.plan.agent).count() == 1


def test_what_was_removed_before_a_stop_stays_removed_and_the_rest_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = ended(40), ended(40)
    for run in (first, second):
        keep(run, keep_last=10)
    prune = ordered()
    seen: list[int] = []

    def after_one(name: str, step: str = "", value: Any = None) -> None:
        if name == "prune_line_done" and not seen:
            seen.append(1)
            prunes.stop(prune, by=ANN)

    monkeypatch.setattr(crash_points, "point", after_one)
    assert prunes.apply(prune)
    assert prune.status == Prune.Status.STOPPED
    assert {len(seqs(first)), len(seqs(second))} == {10, 41}
    told = Event.objects.get(kind="retention.stopped", subject=f"prune:{prune.pk}")
    said = decode_canonical(bytes(told.data))
    assert (told.actor, said["checkpoints"], said["left"]) == ("user:7", prune.removed, 31)
    assert not Event.objects.filter(kind="retention.finished", subject=f"prune:{prune.pk}").exists()
    assert verify_run(first) == verify_run(second) == []
    assert pruned().removed == 31
    assert len(seqs(second)) == 10


def test_the_night_drops_dry_runs_of_a_week_ago_and_prunes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks.prune, "delay", tasks.prune)
    run = ended(20)
    keep(run, keep_last=10)
    old, new = looked(), looked()
    Prune.objects.filter(pk=old.pk).update(at=Now() - timedelta(days=8))
    tasks.prune_nightly()
    old.refresh_from_db()
    new.refresh_from_db()
    assert (old.status, old.lines.count()) == (Prune.Status.DROPPED, 0)
    assert (new.status, new.lines.count()) == (Prune.Status.SHOWN, 1)
    [night] = Prune.objects.filter(nightly=True)
    assert (night.status, night.by) == (Prune.Status.DONE, SYSTEM.id)
    assert len(seqs(run)) == 10
    assert verify_run(run) == []


def test_a_run_that_does_not_verify_is_left_alone_and_named() -> None:
    run = ended(20)
    keep(run, keep_last=10)
    Checkpoint.objects.filter(run=run, seq=3).update(took_us=999)
    prune = pruned()
    assert len(seqs(run)) == 21
    line = prune.lines.get(run=run)
    assert "does not match its digest" in line.fault
    finished = Event.objects.get(kind="retention.finished", subject=f"prune:{prune.pk}")
    assert decode_canonical(bytes(finished.data))["not_verified"] == [run.pk]
    assert not Gap.objects.filter(run=run).exists()
    with pytest.raises(NotVerified):
        delete_batch.prepared(run.pk, run.pk, reading.history_of(run.pk), [3])


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


def remember(run: Run, base: UUID, result: Any) -> None:
    """A step of the run returned this once."""
    Memo.objects.create(run=run, base=base, step="one", name="x", digest=b"d", result=encode_canonical(result), token=1)


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


def test_what_only_a_memo_names_or_was_kept_again_stays() -> None:
    run, _, head = begin(n=0)
    named = kept("named by a memo")
    remember(run, head.id, {"made": named})
    aged(named)
    stray_artifacts.remove(grace=HOUR)
    assert place(named).exists()
    content = os.urandom(20)
    first = artifacts.keep(content)
    aged(first)
    artifacts.keep(content)
    stray_artifacts.remove(grace=HOUR)
    assert place(first).exists()


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
        remember(run, bases[seq], 1)
    keep(run, keep_last=5)
    pruned()
    assert list(Memo.objects.filter(run=run).values_list("base", flat=True)) == [bases[31]]


def started(file: Any, *, team: Any) -> None:
    store.start(plan=make_plan(), team=team, title="A run", values={"scan": file}, first_step="one", by=SYSTEM)


def test_what_a_child_kept_before_the_update_its_parent_may_name() -> None:
    Path(storages["artifacts"].path(stray_artifacts._MARKED)).unlink(missing_ok=True)  # of an update before this one
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
