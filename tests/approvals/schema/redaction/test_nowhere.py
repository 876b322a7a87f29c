"""A secret of a run is in no page, answer, event, log, search or export of it, whatever its agent says."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import logging
from collections.abc import Iterator
from html import escape
from typing import Any
from urllib.parse import quote

import pytest

from agents.models import Effect, Failure
from approvals.audit import exporting
from approvals.models import Gate, Proposal
from checkpoints import store
from checkpoints.actors import OPERATOR
from checkpoints.audit.filters import AuditFilters
from checkpoints.models import Event, EventText, Note, Run
from checkpoints.values.canonical_json import encode_canonical
from tests.approvals.schema.redaction.vault_agent import SECRETS, SESSION, TOKEN
from tests.approvals.schema.redaction.vault_runs import addresses, make_people, make_run, member
from tests.checkpoints.audit.sealed_events import seal_all
from tests.factories.driven_runs import advance_to_rest, decide, open_gate
from tests.factories.driven_runs import make_run as started
from tests.harness.signed_in_clients import signed_in

ANOTHER = "another-77aa\u00e9<&>"  # what a reviewer puts in a secret's place, with what encodings change


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """What the process's own log handler writes, whose stream is another one when it was set up within a test."""
    [handler] = [each for each in logging.getLogger().handlers if type(each) is logging.StreamHandler]
    written = io.StringIO()
    before = handler.setStream(written)
    yield written
    handler.setStream(before or written)


def told_at(run: Run, reader: Any) -> list[str]:
    client, found, seen = signed_in(reader), [], 0
    gates = list(Gate.objects.filter(run=run).values_list("pk", flat=True))
    for address in addresses(run, gates):
        answer = client.get(address)
        assert answer.status_code < 500, address
        seen += answer.status_code == 200
        text = answer.content
        found += [f"{address}: {secret}" for secret in SECRETS if secret.encode() in text]
    assert seen > 30
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
    page = signed_in(member(team)).get(f"/runs/{run.pk}/").content.decode()
    assert "the provider refused" in page
    assert [secret for secret in SECRETS if secret in page] == []
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


def forms(secret: str) -> Iterator[bytes]:
    """The secret as it is, and as it may stand in something else."""
    plain = secret.encode()
    yield from (plain, json.dumps(secret).strip('"').encode(), escape(secret).encode(), quote(secret).encode())
    for at in range(3):  # wherever it begins within three bytes, less what its neighbours share
        yield base64.b64encode(b"\0" * at + plain)[(0, 2, 3)[at] : -4]
    for content in (plain, encode_canonical(secret)):
        yield from (content.hex().encode(), hashlib.sha256(content).hexdigest().encode())


def test_an_export_of_a_run_with_secrets_holds_none_of_them(ledger: str) -> None:
    """A run with its whole story: an edit of secrets, a reveal, a failure that tells one."""
    team = make_people(whole=True)
    reader = member(team, reveals=True)
    run = make_run(team, ledger, note="fail")
    assert signed_in(reader).post(f"/runs/{run.pk}/checkpoints/2/reveals/", {"at": "/token"}).status_code == 200
    action = open_gate(run).standing().card.action("pay")
    assert action is not None
    changed = {**action.arguments, "amount": "13.00", "token": ANOTHER}
    decide(run, "edit", by=reader, arguments={"pay": changed}, comment="I put in another one")
    advance_to_rest(run)
    seal_all()
    wanted, content = AuditFilters.read({"run": f"R-{run.pk}"}), b""
    for format in ("csv", "jsonl"):
        content += b"".join(exporting.prepare(wanted, format=format, texts=True, by=OPERATOR).lines)
    for kind in ("run.started", "gate.opened", "gate.decided", "secret.revealed"):
        assert kind.encode() in content
    assert [secret for secret in (*SECRETS, ANOTHER) if any(form in content for form in forms(secret))] == []
