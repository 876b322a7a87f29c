"""What a decision would do, asked before it is sent."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import Mock

import jsonschema  # type: ignore[import-untyped]
import pytest
from django.contrib.auth.models import User

from approvals.models import Decision, Gate
from checkpoints import store
from checkpoints.models import Checkpoint, Event
from tests.approvals.cards.verdicts.conftest import known_agents, ledger
from tests.approvals.cards.verdicts.verdict_forms import APPROVE, edit, make_three, reject, respond
from tests.factories import ann, bob, make_gate, make_policy, make_question, make_team, make_user
from tests.factories.driven_runs import open_gate
from tests.harness.altered_rows import altered
from tests.harness.signed_in_clients import signed_in

from .sent_requests import ask, document
from .test_deciding import post
from .test_doors import refusal

__all__ = ["known_agents", "ledger"]


def previewed(user: User, gate: Gate, **word: Any) -> Any:
    """What a word on what stands would do."""
    seen = bytes(Gate.objects.get(pk=gate.pk).standing().digest).hex()
    address = f"/api/gates/{gate.pk}/impacts"
    return signed_in(user).post(address, {"seen": seen, **word}, content_type="application/json")


def steps(told: Any) -> dict[str, str]:
    return {row["step"]: row["verdict"] for row in told["impact"]["rows"]}


def test_the_state_is_loaded_once_and_one_that_does_not_verify_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = make_gate()
    by = ann(gate.team)
    load = Mock(wraps=store.load_checkpoint)
    monkeypatch.setattr(store, "load_checkpoint", load)
    assert previewed(by, gate, verdict="approve").status_code == 200
    assert [call.args for call in load.mock_calls] == [(gate.checkpoint,)]
    with altered(Checkpoint.objects.get(pk=gate.checkpoint), state_digest=b"0" * 32):
        refused = previewed(by, gate, verdict="approve")
    assert (refused.status_code, refused.json()["code"]) == (409, "not_verified")


def test_a_mix_is_foretold_as_it_then_comes_and_nothing_is_said_by_asking(ledger: Path) -> None:
    run = make_three(ledger)
    gate, by = open_gate(run), ann(run.team)
    each = {"a": APPROVE, "b": edit(run, "b", amount=20), "c": reject("Not this one.")}
    events = Event.objects.filter(run_id=run.pk).count()
    answer = previewed(by, gate, actions=each)
    assert answer.status_code == 200
    told = answer.json()
    jsonschema.validate(told, {"$ref": "#/components/schemas/DecisionPreview", "components": document()["components"]})
    assert (told["verdict"], told["stands"], told["changed"]) == ("mixed", False, ["b", "c"])
    titles = {row["step"]: row["title"] for row in told["impact"]["rows"]}
    assert {name: titles[name] for name in ("do_one", "log")} == {"do_one": "Do one", "log": "Log"}
    assert steps(told) | {"do_one": "will", "do_two": "will", "do_three": "skipped", "log": "will"} == steps(told)
    gate.refresh_from_db()
    assert (gate.status, gate.proposal, gate.version) == ("open", 1, 1)
    assert not Decision.objects.filter(gate=gate).exists()
    assert Event.objects.filter(run_id=run.pk).count() == events

    decided = post(by, gate, actions=each).json()
    assert decided["verdict"] == told["verdict"]
    effects = ask(by, f"/api/gates/{gate.pk}")["outcome"]["effects"]
    assert effects == [name for name, verdict in steps(told).items() if verdict == "will" and name in effects]


def test_a_word_on_what_others_have_answered_for_speaks_of_what_stands(ledger: Path) -> None:
    team = make_team()
    make_policy(team, name="three", quorum=2)
    run = make_three(ledger, team=team)
    gate, each = open_gate(run), {"a": APPROVE, "b": APPROVE, "c": respond("I rang them.")}
    first = previewed(ann(team), gate, actions=each).json()
    assert (first["stands"], first["verdict"]) == (False, "mixed")
    post(ann(team), gate, actions=each)
    second = previewed(bob(team), gate, verdict="approve").json()
    assert (second["stands"], second["changed"], second["verdict"]) == (True, [], "approve")
    assert second["impact"]["digest"] == first["impact"]["digest"]


def test_a_rejection_of_all_is_foretold_as_what_it_is(ledger: Path) -> None:
    run = make_three(ledger)
    gate, each = open_gate(run), {name: reject("No.") for name in "abc"}
    stopped = previewed(ann(run.team), gate, actions=each, then="stop").json()
    assert (stopped["verdict"], stopped["stands"], stopped["impact"]["ends"]) == ("reject", True, True)
    back = previewed(ann(run.team), gate, actions=each, then="back").json()
    choices = ask(ann(run.team), f"/api/gates/{gate.pk}/impacts")["items"]
    listed = {(one["choice"], one["of"]): one["impact"] for one in choices}
    assert back["impact"] == listed["back", "look"]
    assert stopped["impact"] == listed["stop", ""]


def test_an_answer_is_foretold_as_the_list_of_choices_has_it() -> None:
    gate = make_gate(card=make_question(), kind="recovery")
    by = ann(gate.team)
    told = previewed(by, gate, verdict="answer", answer={"choice": "stop"}).json()
    assert told["verdict"] == "answer"
    listed = {each["of"]: each["impact"] for each in ask(by, f"/api/gates/{gate.pk}/impacts")["items"]}
    assert told["impact"] == listed["stop"]


def test_it_is_refused_as_the_decision_would_be(ledger: Path) -> None:
    run = make_three(ledger)
    gate, by = open_gate(run), ann(run.team)
    told = refusal(previewed(by, gate, actions={"a": APPROVE, "c": reject("")}), 422)
    assert [fault["parameter"] for fault in told["errors"]] == ["/actions/b/verdict"]
    told = refusal(previewed(by, gate, verdict="edit", state={"x": 1}), 422)
    assert "whole" in str(told["errors"])
    refusal(previewed(by, gate, seen="0" * 64, verdict="approve"), 409)
    reader = make_user("Rita Reader", make_team())
    refusal(previewed(reader, gate, verdict="approve"), 404)
    post(by, gate, verdict="approve")
    assert "already decided this" in refusal(previewed(bob(run.team), gate, verdict="approve"), 409)["detail"]


def test_a_gate_says_whether_the_whole_state_may_be_sent() -> None:
    team = make_team()
    for allowed in (False, True):
        gate = make_gate(policy=make_policy(team, name=f"whole {allowed}", whole_state=allowed))
        assert ask(ann(team), f"/api/gates/{gate.pk}")["whole_state"] is allowed
    asked = make_gate(policy=make_policy(team, name="asks", whole_state=True), card=make_question(), kind="recovery")
    assert ask(ann(team), f"/api/gates/{asked.pk}")["whole_state"] is False
