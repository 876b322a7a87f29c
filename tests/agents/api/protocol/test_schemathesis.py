"""Schemathesis over the whole description: whatever is sent, the answer is one that the description tells.

Requests are made from the description, valid and not, and sent to the application in this process, which stands on
the real PostgreSQL and Redis. The numbers in the addresses are those of seeded runs and gates, so that more than 404
comes back. What is made is the same each time; `make test-long` has more of it.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import hypothesis
import pytest
import schemathesis
from django.core.wsgi import get_wsgi_application
from hypothesis.strategies import SearchStrategy
from schemathesis import Case, GenerationMode, checks
from schemathesis.schemas import APIOperation

from approvals.models import Gate
from tests.agents.api.sent_requests import delivery, document
from tests.agents.remote.outside_program import Program
from tests.factories import MEMBER, ann, bob, decide, make_gate, make_team, make_user
from tests.factories.tokens import make_token
from tests.harness.examples import many
from tests.harness.signed_in_clients import signed_in

EXAMPLES = many(12)  # of each operation, from each of those who ask in turn
STREAM = "/api/events/stream"  # answers for as long as somebody listens: there is no body to hold to a schema
PLAIN = {"Accept-Encoding": "identity"}  # schemathesis does not undo the compression of an application in its process
MAY = ("approvals.manage_webhooks", "approvals.decide_gate", *MEMBER)
checks.load_all_checks()
CHECKS: list[Any] = checks.CHECKS.get_by_names(
    ["not_a_server_error", "status_code_conformance", "content_type_conformance", "response_headers_conformance",
     "response_schema_conformance", "unsupported_method", "ignored_auth"]
)  # fmt: skip


@cache
def described() -> Any:
    """The description, with the application that it is of."""
    schema = schemathesis.openapi.from_dict(document())
    schema.app = get_wsgi_application()
    return schema


def operations() -> dict[str, APIOperation[Any, Any, Any, Any]]:
    """Each by its method and address."""
    return {each.ok().label: each.ok() for each in described().get_all_operations()}


@cache
def program() -> Program:
    """One that lives outside, at work on a run of its own."""
    made = Program(team=make_team(may=MAY))
    made.start()
    return made


@cache
def gates() -> tuple[Gate, Gate]:
    """One that is open, and one that was decided."""
    team = program().team
    one, two = make_gate(team=team), make_gate(team=team)
    decide(two, ann(team))
    return one, two


@cache
def member() -> dict[str, str]:
    """Somebody who signed in."""
    client = signed_in(make_user("Ann Okafor", program().team))
    client.get("/")
    cookies = {name: morsel.value for name, morsel in client.cookies.items()}
    told = "; ".join(f"{name}={value}" for name, value in cookies.items())
    return {"Cookie": told, **PLAIN, "X-CSRFToken": cookies.get("csrftoken", "")}


@cache
def bearer(whose: str) -> dict[str, str]:
    """Somebody's token, or the program's."""
    sent = program().sent if whose == "agent" else make_token(bob(program().team))[1]
    return {"Authorization": f"Bearer {sent}", **PLAIN}


def placed(case: Case[Any], number: int) -> None:
    """Point it at something that is there, most of the time."""
    if number % 3 == 2:
        return
    open_one, decided = gates()
    gate = (open_one, decided)[number % 2]
    there: dict[str, Any] = {
        "run_id": (program().run, gate.run_id)[number % 2], "gate_id": gate.pk, "agent": program().agent, "seq": 1,
        "effect_id": 1, "name": "go", "webhook_id": delivery().webhook_id, "delivery_id": delivery().pk,
    }  # fmt: skip
    for name in case.path_parameters or {}:
        case.path_parameters[name] = there[name]
    if isinstance(case.body, dict) and isinstance(case.body.get("token"), int):
        case.body["token"] = program().token


def cases(operation: APIOperation[Any, Any, Any, Any]) -> SearchStrategy[Case[Any]]:
    """What fits the description, and what does not."""
    fits, does_not = (operation.as_strategy(generation_mode=mode) for mode in GenerationMode)
    return fits | does_not


LABELS = list(operations())


@pytest.mark.examples
@pytest.mark.parametrize("label", [each for each in LABELS if STREAM not in each])
def test_whatever_is_sent_is_answered_as_described(label: str) -> None:
    askers = [member(), bearer("person"), bearer("agent")]
    sent: list[int] = []

    @hypothesis.settings(
        max_examples=EXAMPLES, derandomize=True, database=None, deadline=None,
        suppress_health_check=list(hypothesis.HealthCheck), phases=[hypothesis.Phase.generate],
    )  # fmt: skip
    @hypothesis.given(case=cases(operations()[label]))
    def send(case: Case[Any]) -> None:
        number = len(sent)
        sent.append(number)
        placed(case, number + number // len(askers))
        case.call_and_validate(headers=askers[number % len(askers)], checks=CHECKS)

    send()
    assert sent
