"""Whoever wrote what a gate asks about is apart, over the whole lineage.

Somebody edited a run's state and approved the new amount alone: only who had started the run was apart. And whoever had
started a run decided the gates of a fork that somebody else made of it.
"""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User

from agents.moves import fork as forks
from agents.moves import rewind as rewinds
from approvals.audit import evidence
from approvals.errors import NotAllowed, NotVerifiable
from approvals.gates import opening
from approvals.gates.lists.queues import MINE, ReaderReach
from approvals.models import Gate
from approvals.models.row_digests import digest_row
from approvals.policy import authority, enough_reviewers, required
from approvals.presentation.gate_facts import authors
from checkpoints.actors import SYSTEM
from checkpoints.audit import covered_rows
from checkpoints.events.event_proof import ROWS
from checkpoints.models import Checkpoint, Event, Run
from checkpoints.values.canonical_json import decode_canonical
from tests.checkpoints.retention.pruned_runs import keep, pruned
from tests.factories import ann, bob, make_policy, make_team, mira
from tests.factories.driven_runs import advance_to_rest, decide, make_run, open_gate
from tests.harness.altered_rows import altered
from tests.harness.signed_in_clients import signed_in


@pytest.fixture
def asked(ledger: str) -> Run:
    """A booking that waits at its gate."""
    return advance_to_rest(make_run("booking", ledger=ledger))


def change(run: Run, at: int, *, by: User, **fields: Any) -> Run:
    patch = [{"op": "add", "path": f"/{name}", "value": value} for name, value in fields.items()]
    return advance_to_rest(rewinds.edit(run, at=at, patch=patch, by=by))


def is_apart(person: User, run: Run) -> bool:
    """As the gate's page, its queue and the vote say, which have to agree."""
    gate = Gate.objects.select_related("run", "policy").get(pk=open_gate(run).pk)
    apart = bool(authority.why_not(person, gate))
    assert (gate.pk not in ReaderReach.of(person).ids(MINE, most=10)) == apart
    assert (person.pk not in authority.may_decide([gate])[gate.pk]) == apart
    if apart:
        with pytest.raises(NotAllowed):
            decide(run, by=person)
    return apart


def said(run: Run) -> list[str]:
    return authors.changes(open_gate(run))


def test_an_editor_of_the_state_does_not_approve_it(asked: Run) -> None:
    editor, other = ann(asked.team), bob(asked.team)
    assert not is_apart(editor, asked)
    run = change(asked, 1, by=editor, size=90)
    assert is_apart(editor, run)
    assert not is_apart(other, run)
    decide(run, by=other)
    assert advance_to_rest(run).status == "completed"


def test_the_gate_says_who_changed_what_before_it_was_asked(asked: Run) -> None:
    run = change(asked, 1, by=ann(asked.team), size=90)
    assert said(run) == ["Ann Okafor changed size from 1 to 90 at checkpoint 1"]


def test_an_edit_that_a_later_edit_undid_still_counts(asked: Run) -> None:
    first, second = ann(asked.team), bob(asked.team)
    run = change(asked, 1, by=first, size=90)
    edited = Checkpoint.objects.get(run=run, kind="edit").seq
    run = change(run, edited, by=second, size=1)
    assert is_apart(first, run)
    assert is_apart(second, run)
    assert not is_apart(mira(run.team), run)
    assert len(said(run)) == 2


def test_an_edit_that_a_rewind_left_behind_counts_no_more(asked: Run) -> None:
    editor = ann(asked.team)
    run = change(asked, 1, by=editor, size=90)
    run = advance_to_rest(rewinds.rewind(run, to=1, by=bob(run.team)))
    assert not is_apart(editor, run)
    assert said(run) == []


def test_a_fork_washes_nobody(ledger: str) -> None:
    team = make_team()
    starter, editor, forker = ann(team), bob(team), mira(team)
    run = advance_to_rest(make_run("booking", team=team, started_by=starter, ledger=ledger))
    run = change(run, 1, by=editor, size=90)
    seq = Checkpoint.objects.get(run=run, kind="edit").seq
    made = advance_to_rest(forks.fork(run, at=seq, by=forker))
    for person in (starter, editor, forker):
        assert is_apart(person, made)
    patch = [{"op": "replace", "path": "/size", "value": 2}]
    before = advance_to_rest(forks.fork(run, at=1, by=forker, patch=patch))
    assert not is_apart(editor, before), "the edit came after the fork's checkpoint"
    assert is_apart(starter, before)
    assert said(before) == [
        f"Ann Okafor started R-{run.pk}, from which this comes",
        f"Mira Sandoval changed size from 1 to 2 at checkpoint 1 for the fork R-{before.pk}",
    ]


def test_where_duties_are_not_separated_an_editor_decides(ledger: str) -> None:
    team = make_team()
    make_policy(team, name="default", separation=False)
    editor = ann(team)
    run = advance_to_rest(make_run("booking", team=team, ledger=ledger))
    run = change(run, 1, by=editor, size=90)
    assert not is_apart(editor, run)
    assert said(run) == ["Ann Okafor changed size from 1 to 90 at checkpoint 1"]


def test_nobody_decides_for_an_editor_and_the_dead_end_is_said(asked: Run) -> None:
    editor = ann(asked.team)
    run = change(asked, 1, by=editor, size=90)
    gate = open_gate(run)
    words = enough_reviewers.lacking(gate, required.of(gate.standing(), gate.policy))
    assert words.startswith("Nobody may decide in"), words
    assert "not counting the requester or who changed the run before this was asked" in words


def test_a_gate_of_an_older_release_is_looked_up(asked: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its row has no authors: a process of the release before does not know the column.

    What was looked up was written onto the gate, so that the decision's event told of another row, and the run failed.
    """
    drafted = opening.drafted

    def drafted_before(*asked: Any, **more: Any) -> Any:
        made, rows = drafted(*asked, **more)
        for gate, _ in made:
            gate.authors = None  # as its event tells
        return made, rows

    monkeypatch.setattr(opening, "drafted", drafted_before)
    editor, other = ann(asked.team), bob(asked.team)
    run = change(asked, 1, by=editor, size=90)
    Gate.objects.filter(pk=open_gate(run).pk).update(authors=None)
    assert authority.why_not(editor, open_gate(run))
    decide(run, by=other)
    assert advance_to_rest(run).status == "completed"


@pytest.mark.parametrize("stored", [True, False])
def test_a_gate_whose_state_retention_removed_still_says_who_changed_the_run(asked: Run, stored: bool) -> None:
    """Its address in the API answered 500."""
    editor, other = ann(asked.team), bob(asked.team)
    run = change(asked, 1, by=editor, size=90)
    gate = open_gate(run)
    decide(run, by=other)
    assert advance_to_rest(run).status == "completed"
    keep(run, keep_last=1)
    pruned()
    with altered(gate, authors=gate.authors if stored else None):
        answer = signed_in(other).get(f"/api/gates/{gate.pk}")
    assert answer.status_code == 200, answer.content
    assert answer.json()["changed_before"] == (["Ann Okafor changed the run before"] if stored else [])


def test_the_release_before_goes_on_with_a_gate_that_has_authors(asked: Run) -> None:
    """It does not know the column, which its digest of the gate lacks, and wrote that the gate was forged."""
    editor, other = ann(asked.team), bob(asked.team)
    run = change(asked, 1, by=editor, size=90)
    gate = open_gate(run)
    assert moved(gate)[gate.subject] == digest_row(gate, known_before())
    assert is_apart(editor, run)
    moved_before(gate)
    with altered(gate, authors=[]), pytest.raises(NotVerifiable):
        decide(run, by=editor)
    with altered(gate, authors=[]):
        assert next(str(each) for each in covered_rows.check_run(run.pk)).startswith(
            f"authors {gate.pk} (gate {gate.pk})"
        )
    decide(run, by=other)
    assert advance_to_rest(run).status == "completed"


def known_before() -> list[str]:
    """The columns of a gate that the release before covers."""
    return [each for each in evidence.GATE if each != "authors"]


def moved(gate: Gate) -> dict[str, str]:
    """The rows of the last event that moved the gate."""
    rows: dict[str, str] = decode_canonical(bytes(Event.objects.filter(subject=gate.subject).latest("pk").data))[ROWS]
    return rows


def moved_before(gate: Gate) -> None:
    """A process of the release before moves the gate."""
    gate.vouched = True
    data = evidence.opened(gate, gate.standing())
    data[ROWS] = {name: said for name, said in data[ROWS].items() if not name.startswith("authors:")}
    gate.say("gate.rescheduled", by=SYSTEM, data=data)
