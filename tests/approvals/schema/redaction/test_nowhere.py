"""A secret of a run is in no page, answer, event, log, search or export of it, whatever its agent says."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents.models import Effect, Failure
from approvals.models import Gate, Proposal
from checkpoints import store
from checkpoints.models import Event, EventText, Note, Run
from tests.factories.driven_runs import advance_to_rest, decide, open_gate
from tests.factories.driven_runs import make_run as started
from tests.harness.signed_in_clients import signed_in

from .vault_agent import SECRETS, SESSION, TOKEN
from .vault_runs import addresses, make_people, make_run, member


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """What the process's own log handler writes, whose stream is another one when it was set up within a test."""
    [handler] = [each for each in logging.getLogger().handlers if type(each) is logging.StreamHandler]
    written = io.StringIO()
    before = handler.setStream(written)
    yield written
    handler.setStream(before or written)


def told_at(run: Run, reader: Any) -> list[str]:
    """The addresses that tell a secret."""
    client, found, seen = signed_in(reader), [], 0
    gates = list(Gate.objects.filter(run=run).values_list("pk", flat=True))
    for address in addresses(run, gates):
        answer = client.get(address)
        assert answer.status_code < 500, address
        seen += answer.status_code == 200
        text = answer.content
        found += [f"{address}: {secret}" for secret in SECRETS if secret.encode() in text]
    assert seen > 40
    return found


def test_it_is_told_at_no_address_before_and_after_the_decision(ledger: str) -> None:
    team = make_people(whole=True)
    run = make_run(team, ledger)
    reader = member(team, reveals=True)
    assert told_at(run, reader) == []
    gate = open_gate(run)
    action = gate.standing().card.action("pay")
    assert action is not None
    decide(run, "edit", by=reader, arguments={"pay": {**action.arguments, "amount": "13.00", "token": "another-77aa"}})
    run = advance_to_rest(run)
    assert run.status == "completed"
    assert told_at(run, reader) == []
    assert store.load(run).state["session"] == SESSION
    assert "another-77aa" not in str(store.load(run).state["decision"]) + str(store.load(run).state["feedback"])


def test_what_a_failing_step_says_of_it_is_kept_without_it(ledger: str, log: io.StringIO) -> None:
    team = make_people()
    run = make_run(team, ledger, note="fail")
    decide(run, by=member(team))
    run = advance_to_rest(run)
    [failure] = Failure.objects.filter(run=run)
    assert "the provider refused ••••••••" in failure.error
    assert TOKEN not in bytes(failure.traceback).decode()
    assert told_at(run, member(team)) == []
    assert "step.failed" in log.getvalue()
    assert [secret for secret in SECRETS if secret in log.getvalue()] == []


def test_no_event_title_note_or_card_holds_it(ledger: str) -> None:
    run = make_run(make_people(), ledger)
    [gate] = Gate.objects.filter(run=run)
    card = Proposal.objects.get(gate=gate).card
    words = [run.title, gate.title, card.summary, card.resource, *card.reasons, str(card.actions[1].arguments)]
    assert all("••••••••" in each for each in words)
    held = [bytes(event.data) for event in Event.objects.filter(run_id=run.pk)]
    held += [bytes(text.text) for text in EventText.objects.filter(event__run_id=run.pk)]
    assert not any(TOKEN.encode() in each for each in held)
    assert not Effect.objects.filter(run=run, error__contains=TOKEN).exists()


def test_what_runs_is_the_true_value(ledger: str) -> None:
    team = make_people()
    run = make_run(team, ledger)
    before = store.load(run).state["payment"]["token"]
    decide(run, "edit", by=member(team), arguments=_of(open_gate(run), amount="13.00"))
    run = advance_to_rest(run)
    assert before == TOKEN
    assert TOKEN in Path(ledger).read_text()


def _of(gate: Gate, **changes: Any) -> dict[str, Any]:
    action = gate.standing().card.action("pay")
    assert action is not None
    return {"pay": {**action.arguments, **changes}}


@pytest.mark.parametrize("refuse", [False, True])
def test_what_a_step_says_of_a_secret_that_it_makes_is_kept_without_it(refuse: bool, log: io.StringIO) -> None:
    """A text was searched for the secrets of the state before the step, which did not have this one yet."""
    team = make_people()
    run = advance_to_rest(started("minter", team=team, refuse=refuse))
    assert run.status == ("waiting" if refuse else "completed")
    notes = [bytes(each.text).decode() for each in Note.objects.filter(run=run)]
    assert notes == ([] if refuse else ["made ••••••••"])
    kept = [each.error + bytes(each.traceback).decode() for each in Failure.objects.filter(run=run)]
    kept += [Proposal.objects.get(gate=gate).card.summary for gate in Gate.objects.filter(run=run)]
    assert [words for words in kept if SESSION in words] == []
    assert bool(kept) is refuse
    assert SESSION not in str(store.load(run).state["feedback"]) + log.getvalue()


def test_a_secret_is_among_the_words_of_no_gate_and_finds_none(ledger: str) -> None:
    team = make_people(whole=True)
    run = make_run(team, ledger)
    reader = member(team, reveals=True)
    gate = open_gate(run)
    client = signed_in(reader)
    terms = Gate.objects.get(pk=gate.pk).terms.lower().split()
    assert "vault" in terms or len(terms) > 3
    for secret in SECRETS:
        kind, rest = secret.split("-")
        assert rest not in terms
        for words in (secret, rest, rest[:5]):
            page = client.get("/inbox/list/", {"queue": "all", "q": words}).content.decode()
            assert f'id="gate-{gate.pk}"' not in page, (kind, words)
