"""What people approved, and what came of it, as the sealed events keep it: one changed row is found, and a forged
approval is neither performed nor shown.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from django.core.management import CommandError, call_command
from django.db import ProgrammingError, transaction
from django.db.models import Field, ForeignKey, Model

from agents.effects import perform as effects_of
from agents.models import Effect
from agents.models import effect as effects
from agents.moves import cancel, rewind
from approvals.audit import evidence
from approvals.cards import binding
from approvals.errors import NotVerifiable
from approvals.gates.reading import read
from approvals.models import Calendar, Decision, Gate, Grant, Outcome, Policy, Proposal
from approvals.models.policy import COVERED as OF_POLICY
from checkpoints.audit import covered_rows, database
from checkpoints.audit.verify_runs import verify_run
from checkpoints.models import Event, Run
from checkpoints.seals.leaves import IntegrityProblem
from checkpoints.values.canonical_json import decode_canonical, encode_canonical
from tests.factories import REJECTION, ann, bob, make_gate, make_policy, make_team, make_user
from tests.factories import decide as say
from tests.factories.driven_runs import advance, advance_to_rest, decide, make_run, open_gate
from tests.harness.altered_rows import altered, owner, removed
from tests.harness.signed_in_clients import signed_in

COVERED: dict[type[Model], tuple[str, ...]] = {
    Gate: (*evidence.GATE, *evidence.AUTHORS),
    Policy: OF_POLICY,
    Proposal: evidence.PROPOSAL,
    Decision: evidence.DECISION,
    Outcome: evidence.OUTCOME,
    Grant: ("outcome_id", "action", "effect"),
    Effect: effects.COLUMNS,
}
# What decides nothing: words for the search, whose queues show it, times that the events have themselves, a vote that
# lapsed, where a result was written (which has its own chain), the worker that had the row in hand.
LEFT_OUT = {
    # The second line: copies of the proposal, by which lists are sorted and gates found that ask the same.
    "Gate": {
        "terms", "opened_at", "closed_at", "awaits", "turn",
        "amount_currency", "amount_value", "delay_currency", "delay_value", "resource", "request_digest",
    },
    "Policy": {"created_at"},
    "Proposal": {"created_at"},
    "Decision": {"counts"},
    "Grant": {"same_arguments", "same_key", "same_resource"},  # digests by which a warning finds it
    "Effect": {"token", "again", "landings", "intended_at", "settled_at"},
}  # fmt: skip


def paid(ledger_file: Path) -> Run:
    """A run that was asked for, approved and performed; another gate stands beside it."""
    run = advance(make_run("payer", ledger=str(ledger_file)))
    decide(run)
    assert advance_to_rest(run).status == "completed"
    make_gate(team=run.team)
    return run


@cache
def paid_once() -> Run:
    """A run, and another beside it, for tests that put back what they change: making one takes longer than looking."""
    folder = Path(tempfile.mkdtemp(dir=os.environ["HPTEST_HOME"]))
    paid(folder / "another's")
    return paid(folder / "ledger")


def faults(run: Run) -> list[str]:
    return [str(problem) for problem in covered_rows.check_run(run.pk)]


def take_away(*rows: Model) -> None:
    """Remove what a test slipped in, for whoever verifies everything afterwards."""
    with owner() as made:
        for row in rows:
            made.execute(f"DELETE FROM {row._meta.db_table} WHERE id = %s".encode(), [row.pk])


def rows_of(run: Run) -> dict[type[Model], Model]:
    gate = run.gates.get()
    return {
        Gate: gate,
        Policy: gate.policy,
        Proposal: gate.proposals.get(),
        Decision: gate.decisions.get(),
        Outcome: gate.outcome,
        Grant: gate.outcome.grants.order_by("pk")[0],
        Effect: Effect.objects.filter(run=run).order_by("pk")[0],
    }


def another(field: Field[Any, Any], row: Model) -> Any:
    value = getattr(row, field.attname)
    if isinstance(field, ForeignKey):
        return field.related_model._default_manager.exclude(pk=value).order_by("-pk").values_list("pk", flat=True)[0]
    changed: dict[type, Callable[[Any], Any]] = {
        bool: lambda each: not each,
        int: lambda each: each + 1,
        str: lambda each: "another",
        list: lambda each: [*each, "another"],
        bytes: lambda each: bytes(each) + b" ",
        memoryview: lambda each: bytes(each) + b" ",
        uuid.UUID: lambda each: uuid.uuid4(),
        dt.datetime: lambda each: each + dt.timedelta(microseconds=1),
        dt.timedelta: lambda each: each + dt.timedelta(seconds=1),
    }
    if value is None:
        return {"DateTimeField": dt.datetime.now(dt.UTC), "DurationField": dt.timedelta(1)}.get(
            field.get_internal_type(), b"x"
        )
    return changed[type(value)](value)[: field.max_length] if isinstance(value, str) else changed[type(value)](value)


# What else has to be another, so that the row is not one that there is already, or that the column takes.
UNIQUE: dict[tuple[type[Model], str], dict[str, Any]] = {
    (Policy, "team_id"): {"version": 9},
    (Proposal, "gate_id"): {"number": 9},
    (Grant, "outcome_id"): {"action": "moved"},
    (Gate, "authors"): {"authors": [7]},
}


@pytest.mark.parametrize("model", COVERED, ids=lambda model: model.__name__)
def test_each_column_is_covered_or_left_out_on_purpose_and_one_changed_is_found(model: type[Model]) -> None:
    fields = {field.attname: field for field in model._meta.concrete_fields}
    assert fields.keys() - {"id"} - set(COVERED[model]) == LEFT_OUT.get(model.__name__, set())
    run = paid_once()
    row = rows_of(run)[model]
    Calendar.objects.get_or_create(team=run.team, name="office")
    numbers = {"gate": [run.gates.get().pk], "effect": [effect.pk for effect in Effect.objects.filter(run=run)]}
    kind = {Grant: "outcome", Effect: "effect"}.get(model, model.__name__.lower())
    assert faults(run) == []
    for column in COVERED[model]:
        if (model, column) == (Effect, "grant_id"):
            changed: dict[str, Any] = {column: None}
        else:
            changed = {column: another(fields[column], row), **UNIQUE.get((model, column), {})}
        with altered(row, **changed):
            found = [
                str(problem)
                for cover in covered_rows.covers.values()
                for problem in cover.check(numbers.get(cover.name, ()))
            ]
        subject = "authors" if column == "authors" else kind
        assert any(each.startswith(subject) for each in found), (column, found)
    assert faults(run) == []


def test_rows_that_are_removed_or_slipped_in_are_found() -> None:
    run = paid_once()
    gate = run.gates.get()
    outcome = gate.outcome
    grant = Grant.objects.filter(outcome=outcome, effect_row__isnull=True).first()
    assert grant is None  # both were used, so that none can go by itself
    with owner() as made:
        link = "approvals_outcome_decisions WHERE outcome_id = %s"
        made.execute(f"CREATE TEMP TABLE links AS SELECT * FROM {link}", [outcome.pk])
        made.execute(f"DELETE FROM {link}", [outcome.pk])
        assert [each.split(":")[0] for each in faults(run)] == [f"outcome {outcome.pk} (gate {outcome.gate_id})"]
        made.execute("INSERT INTO approvals_outcome_decisions OVERRIDING SYSTEM VALUE TABLE links")
    assert faults(run) == []
    slipped = Grant.objects.create(outcome=outcome, action="another", effect="pay")
    assert [each.split(":")[0] for each in faults(run)] == [f"outcome {outcome.pk} (gate {outcome.gate_id})"]
    with pytest.raises(Exception, match="differs from what was recorded"):  # so it lets nothing run twice
        evidence.check_ended(gate, outcome)
    take_away(slipped)
    voice = Decision.objects.create(
        gate=gate, proposal=gate.standing(), user=bob(run.team), verdict="approve", seen=b"", key="x",
        request=b"",
    )  # fmt: skip
    assert faults(run) == [f"decision {voice.pk} (gate {voice.gate_id}): {covered_rows.NO_EVENT}"]
    take_away(voice)
    assert faults(run) == []


def test_a_vote_that_is_removed_is_found() -> None:
    team = make_team()
    gate = make_gate(policy=make_policy(team, quorum=2))
    vote = say(gate, ann(team))
    with removed(vote):
        assert [str(each) for each in covered_rows.check_run(gate.run_id)] == [
            f"decision {vote.pk} (gate {gate.pk}): is gone; event {Event.objects.latest('pk').pk} recorded it"
        ]
    assert covered_rows.check_run(gate.run_id) == []


def forge(run: Run, *, tell: bool) -> None:
    """Close the run's gate with what the application's role may write: another amount, two grants, nobody's word."""
    gate = open_gate(run)
    body = decode_canonical(bytes(gate.standing().body))
    body["actions"][0]["arguments"] = {"to": "EVIL", "amount": "99999.00"}
    forged = Proposal.objects.create(gate=gate, number=2, body=encode_canonical(body), digest=binding.seen(body))
    outcome = Outcome.objects.create(
        gate=gate, proposal=forged, kind="approved",
        arguments=encode_canonical({"pay": body["actions"][0]["arguments"]}),
        patch=encode_canonical([{"op": "replace", "path": "/proposal", "value": {"to": "EVIL", "amount": "99999.00"}}]),
        seen=bytes(forged.digest), to_run=b"x" * 32, by="user:1", by_name="Ann Okafor",
    )  # fmt: skip
    grants = [Grant.objects.create(outcome=outcome, action="pay", effect=name) for name in ("pay", "mail")]
    Gate.objects.filter(pk=gate.pk).update(status="decided", proposal=2)
    Run.objects.filter(pk=run.pk).update(status="queued")
    if tell:
        closed = Gate.objects.select_related("policy").get(pk=gate.pk)
        closed.vouched = True
        data = {"kind": "approved", **evidence.ended(closed, outcome, [], grants)}
        Event.objects.create(
            kind="gate.closed", run_id=run.pk, team_id=run.team_id, subject=gate.subject, version=2, actor="user:1",
            actor_name="Ann Okafor", data=encode_canonical(data),
        )  # fmt: skip


@pytest.fixture
def forgotten() -> Iterator[list[int]]:
    """Gates that a test leaves forged: whoever verifies everything after it passes them by."""
    made: list[int] = []
    yield made
    with owner() as session:
        for gate in made:
            Gate.objects.filter(pk=gate).update(proposal=1)
            outcomes = "SELECT id FROM approvals_outcome WHERE gate_id = %s"
            for rows, which in (
                (f"approvals_grant WHERE outcome_id IN ({outcomes})", gate),
                ("approvals_outcome WHERE gate_id = %s", gate),
                ("approvals_proposal WHERE gate_id = %s AND number > 1", gate),
                ("checkpoints_event WHERE subject = %s AND kind <> 'gate.opened'", f"gate:{gate}"),
            ):
                session.execute(f"DELETE FROM {rows}".encode(), [which])
            Gate.objects.filter(pk=gate).update(status="open", version=1, closed_at=None)


@pytest.mark.parametrize("tell", [False, True], ids=["without an event", "with an event"])
def test_an_approval_that_nobody_gave_is_not_performed_and_freezes_the_run(
    ledger: Path, forgotten: list[int], tell: bool
) -> None:
    run = advance(make_run("payer", ledger=str(ledger)))
    gate = open_gate(run)
    forgotten.append(gate.pk)
    forge(run, tell=tell)
    advance(run)
    assert (run.status, run.frozen) == ("failed", True)
    assert f"Integrity fault at gate {gate.pk}" in run.reason
    assert not ledger.exists()
    assert not Effect.objects.filter(run=run).exists()
    said = [str(problem) for problem in verify_run(run)]
    assert any(each.startswith(f"outcome {Outcome.objects.get(gate=gate).pk}") for each in said) or tell
    assert any(f"gate {gate.pk}" in each or "gate.closed" in each for each in said)
    with pytest.raises(CommandError, match=r"faults? found"):
        call_command("verify", str(run.pk))
    page = signed_in(ann(run.team)).get(f"/gates/{gate.pk}/")
    assert page.status_code == 409
    assert "99999.00" not in page.content.decode()


def test_a_result_that_somebody_wrote_into_the_ledger_is_not_taken_over(ledger: Path) -> None:
    """What the application's role may change: the run would have gone on with a receipt that no provider gave."""
    run = paid(ledger)
    row = Effect.objects.get(run=run, step="pay")
    rewind.rewind(run, to=1, by=ann(run.team))
    with altered(row, result=encode_canonical({"payment": "forged"})):
        for _ in range(4):
            advance(run)
        assert (run.status, run.reason.split(";")[0]) == (
            "failed",
            f"Integrity fault at effect {row.pk}: differs from what event {told(row)} recorded",
        )


def told(row: Effect) -> int:
    return Event.objects.filter(subject=row.subject).latest("pk").pk


def test_a_policy_that_was_lowered_in_its_row_lets_nobody_decide() -> None:
    team = make_team()
    policy = make_policy(team, quorum=2, step_up=True)
    gate = make_gate(policy=policy)
    for column, value in {"quorum": 1, "step_up": False}.items():
        with altered(policy, **{column: value}), pytest.raises(NotVerifiable):
            say(gate, ann(team))
    refused = Event.objects.filter(subject=gate.subject, kind="decision.refused").latest("pk")
    assert json.loads(bytes(refused.data))["kind"] == NotVerifiable.code


def test_an_event_that_was_written_without_the_key_covers_nothing(settings: Any) -> None:
    gate = make_gate()
    key = settings.HOLDPOINT_SEAL_KEY
    settings.HOLDPOINT_SEAL_KEY = "another key"
    assert [problem.reason for problem in covered_rows.check_run(gate.run_id)] == [
        f"(gate.opened of gate:{gate.pk}) {covered_rows.UNPROVEN}"
    ]
    settings.HOLDPOINT_SEAL_KEY = key
    assert covered_rows.check_run(gate.run_id) == []

    settings.HOLDPOINT_SEAL_KEY, settings.HOLDPOINT_OLD_SEAL_KEYS = "another key", [key]
    assert covered_rows.check_run(gate.run_id) == []
    assert evidence.vouch(read(gate.pk).proposal)


def slip_in_vote(gate: Gate, voter: Any, **columns: Any) -> Decision:
    """A vote as the application's role writes one: a row, and no event."""
    standing = gate.standing()
    said = {"verdict": "approve", "verdicts": b"{}", "answer": b"null", "preconditions": b"[]", "repeats": b"[]"}
    row = said | {"seen": bytes(standing.digest), "key": "forged", "request": b"x"} | columns
    return Decision.objects.create(gate=gate, proposal=standing, user=voter, **row)


def test_a_vote_that_nobody_gave_counts_towards_no_quorum() -> None:
    """One real vote closed the gate around it, and the payment went out."""
    team = make_team()
    gate = make_gate(policy=make_policy(team, quorum=2))
    vote = slip_in_vote(gate, bob(team))
    with pytest.raises(NotVerifiable):
        say(gate, ann(team))
    assert Gate.objects.get(pk=gate.pk).status == "open"
    assert faults(gate.run) == [f"decision {vote.pk} (gate {gate.pk}): {covered_rows.NO_EVENT}"]
    take_away(vote)
    vote = say(gate, ann(team))
    with altered(vote, user_id=make_user("Rita Reviewer", team).pk), pytest.raises(NotVerifiable):
        say(gate, bob(team))
    say(gate, bob(team))
    assert Gate.objects.get(pk=gate.pk).outcome.kind == "approved"


@contextmanager
def repeated(event: Event) -> Iterator[Event]:
    """Write the event once more, with its proof, as the application's role may insert it."""
    names = ("kind", "subject", "run_id", "team_id", "version", "actor", "actor_name")
    made = Event.objects.create(**{name: getattr(event, name) for name in names}, data=bytes(event.data))
    try:
        yield made
    finally:
        take_away(made)


def test_a_proven_event_that_is_written_once_more_is_not_the_last_word() -> None:
    """A rejected gate was opened again by its row and a copy of the event of its opening, and verified."""
    gate = make_gate()
    say(gate, ann(gate.team), "reject", **REJECTION)
    closed = Gate.objects.get(pk=gate.pk)
    opened = Event.objects.get(subject=gate.subject, kind="gate.opened")
    with altered(closed, status="open", version=0), repeated(opened) as copy:
        assert not evidence.vouch(read(gate.pk).proposal)
        assert f"event {copy.pk}: (gate.opened of {gate.subject}) repeats event {opened.pk}" in faults(gate.run)
        assert any(fault.startswith(f"gate {gate.pk}: differs") for fault in faults(gate.run))
    assert faults(gate.run) == []
    opened.version = 99  # nor under a higher version
    with repeated(opened) as copy:
        assert f"event {copy.pk}: (gate.opened of {gate.subject}) {covered_rows.UNPROVEN}" in faults(gate.run)


def test_a_row_of_a_number_that_is_far_away_keeps_no_verification_busy() -> None:
    """It went through all numbers up to it, five hundred at a time."""
    far = 9_000_000_000_000_000_000
    told = {"kind": "gate.opened", "subject": f"gate:{far}", "data": encode_canonical({"rows": {}})}
    event = Event.objects.create(**told, actor="system", actor_name="x")
    cover = covered_rows.covers["gate"]
    try:
        steps, at = 0, 0
        while numbers := cover.next(at):
            at, steps = numbers[-1], steps + 1
        assert at < far
        assert steps < 1000
    finally:
        take_away(event)


def test_a_verification_of_everything_looks_at_these_rows_too() -> None:
    run = paid_once()
    outcome = run.gates.get().outcome
    with altered(outcome, by_name="Mallory"):
        assert [problem for problem in database.verify() if problem.subject.startswith("outcome")] == [
            IntegrityProblem(
                f"outcome {outcome.pk} (gate {outcome.gate_id})",
                f"differs from what event {Event.objects.get(kind='gate.closed', run_id=run.pk).pk} recorded",
            )
        ]


def test_an_effect_that_nobody_allowed_is_not_sent_by_calling_it_failed(ledger: Path) -> None:
    """What had failed was tried again without a permit, so a slipped-in row of that status was as good as one."""
    run, real, slipped = advance(make_run("payer", ledger=str(ledger))), effects_of.newest, list[Effect]()

    def newest(session: Any, spec: Any) -> Effect | None:
        if not slipped:
            row = {"run": run, "step": spec.name, "base": session.snapshot.id, "token": session.claim.token}
            row |= {"input_digest": session.input_digest(spec), "key": uuid.uuid4().hex, "status": "failed"}
            slipped.append(Effect.objects.create(**row))
        return real(session, spec)

    decide(run)
    with mock.patch.object(effects_of, "newest", newest):
        assert advance(run).status == "failed"
    assert "no event vouches for it" in run.reason
    assert not ledger.exists()
    assert faults(run) == [f"effect {slipped[0].pk}: {covered_rows.NO_EVENT}"]
    take_away(*slipped)


def test_the_applications_role_changes_of_an_effect_only_what_came_of_it() -> None:
    row = Effect.objects.filter(run=paid_once()).order_by("pk")[0]
    for column, value in {"grant_id": None, "key": "f" * 64, "input_digest": b"x", "step": "mail"}.items():
        with pytest.raises(ProgrammingError, match="permission denied"), transaction.atomic():
            Effect.objects.filter(pk=row.pk).update(**{column: value})


def test_a_result_that_nobody_got_is_not_undone(ledger: Path) -> None:
    """The undo of a slipped-in row took back another run's payment."""
    run = paid(ledger)
    row = Effect.objects.get(run=run, step="pay")
    before = ledger.read_text()
    rewind.rewind(run, to=1, by=ann(run.team))
    run.refresh_from_db()
    cancel.cancel(run, by=ann(run.team), reason="Not this.")
    with altered(row, result=encode_canonical({"payment": "anothers"})):
        for _ in range(4):
            advance(run)
        assert "differs from what event" in run.reason
    assert ledger.read_text() == before
