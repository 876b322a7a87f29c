"""A recovery gate's question is answered by one of its choices, and only some of them let the effect run."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from approvals.errors import Invalid
from approvals.models import Gate, Outcome
from tests.factories import ann, bob, decide, make_gate, make_policy, make_question, make_team

HAPPENED = {"choice": "happened", "value": {"id": "re_1"}}


def answered(answer: dict[str, Any]) -> Outcome:
    """Say how a recovery gate ends by this answer."""
    team = make_team()
    gate = make_gate(team=team, kind="recovery")
    decide(gate, ann(team), "answer", answer=answer)
    return Outcome.objects.get(gate=gate)


def test_it_happened_carries_the_result_and_grants_nothing() -> None:
    outcome = answered(HAPPENED)
    assert (outcome.kind, outcome.answered, outcome.to_run) == ("answered", HAPPENED, None)
    assert not outcome.grants.exists()


@pytest.mark.parametrize("choice", ["not_happened", "again"])
def test_doing_it_grants_the_effect_and_binds_what_it_reads(choice: str) -> None:
    outcome = answered({"choice": choice})
    assert outcome.answered == {"choice": choice, "value": None}
    assert list(outcome.grants.values_list("action", "effect")) == [("", "pay")]
    assert sorted(outcome.approved().bound["pay"]) == ["order", "proposal"]
    assert bytes(outcome.to_run or b"") == outcome.approved().digest()


def test_stopping_grants_nothing() -> None:
    assert not answered({"choice": "stop"}).grants.exists()


@pytest.mark.parametrize(
    ("answer", "pointer"),
    [
        (None, "/choice"),
        ({"choice": "maybe"}, "/choice"),
        ({"choice": "happened"}, "/value"),
        ({"choice": "happened", "value": "a text"}, "/value"),
        ({"choice": "again", "value": 1}, "/value"),
    ],
)
def test_an_answer_that_the_question_does_not_offer_is_refused(answer: dict[str, Any] | None, pointer: str) -> None:
    team = make_team()
    gate = make_gate(team=team, kind="recovery")
    with pytest.raises(Invalid) as caught:
        decide(gate, ann(team), "answer", answer=answer)
    assert [error["pointer"] for error in caught.value.errors] == [pointer]
    assert Gate.objects.get(pk=gate.pk).status == "open"


@pytest.mark.parametrize("verdict", ["approve", "reject", "edit"])
def test_a_question_wants_an_answer_and_no_verdict(verdict: str) -> None:
    team = make_team()
    gate = make_gate(team=team, kind="recovery")
    with pytest.raises(Invalid, match="Choose one of the answers"):
        decide(gate, ann(team), verdict)


def test_a_quorum_has_to_give_the_same_answer() -> None:
    team = make_team()
    gate = make_gate(policy=make_policy(team, quorum=2), kind="recovery")
    first, second = ann(team), bob(team)
    decide(gate, first, "answer", answer=HAPPENED)
    decide(gate, second, "answer", answer={"choice": "again"})
    assert Gate.objects.get(pk=gate.pk).status == "open"
    decide(gate, first, "answer", answer={"choice": "again"})
    assert Outcome.objects.get(gate=gate).answered == {"choice": "again", "value": None}


def test_a_question_about_a_gate_step_never_grants_what_that_gate_would_allow() -> None:
    team = make_team()
    gate = make_gate(team=team, card=make_question(allows=()))
    decide(gate, ann(team), "answer", answer={"choice": "again"})
    assert not Outcome.objects.get(gate=gate).grants.exists()


@pytest.fixture
def provider() -> Iterator[tuple[str, list[str]]]:
    """A web server that offers a schema, and the paths it was asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/schema.json", asked
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_schema_that_points_elsewhere_is_never_fetched(provider: tuple[str, list[str]]) -> None:
    address, asked = provider
    team = make_team()
    card = make_question()
    assert card.question is not None
    card.question["choices"][0]["schema"] = {"$ref": address}
    gate = make_gate(team=team, kind="recovery", card=card)
    with pytest.raises(Invalid, match="cannot be read"):
        decide(gate, ann(team), "answer", answer=HAPPENED)
    assert asked == []
