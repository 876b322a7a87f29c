"""What every test of the API needs: its own description, and somebody who asks."""

from __future__ import annotations

import copy
import json
import re
from functools import cache
from typing import Any
from uuid import UUID

import jsonschema  # type: ignore[import-untyped]
from django.contrib.auth.models import User

from agents.api.interface import api
from approvals.models import Gate, Message
from approvals.webhooks import outbox
from checkpoints import store
from checkpoints.actors import SYSTEM
from checkpoints.layout.snapshot import Header
from checkpoints.models import Run
from checkpoints.store import claims
from tests.approvals.webhooks.made_webhooks import make_webhook
from tests.factories import make_gate, make_run, make_team, make_user
from tests.harness.signed_in_clients import signed_in

EXACT = {"count": 1, "share": 1.0, "huge": 2**64 + 1, "tiny": -0.0, "vast": 1e300, "text": "\x00é"}


@cache
def document() -> dict[str, Any]:
    """The OpenAPI document. Tests are collected by it, before anything is served."""
    found: dict[str, Any] = json.loads(json.dumps(api.get_openapi_schema(path_prefix="/api/")))
    return found


def paths() -> list[str]:
    return list(document()["paths"])


def operations() -> list[tuple[str, str, dict[str, Any]]]:
    return [(path, method, told) for path, of in document()["paths"].items() for method, told in of.items()]


def check_shape(found: Any, name: str) -> None:
    jsonschema.validate(found, {"$ref": f"#/components/schemas/{name}", "components": document()["components"]})


def takes_a_body(path: str) -> bool:
    return "requestBody" in document()["paths"][path]["post"]


def example(path: str) -> dict[str, Any]:
    """The body that the description gives as an example."""
    if not takes_a_body(path):
        return {}
    content = document()["paths"][path]["post"]["requestBody"]["content"]
    found: dict[str, Any] = copy.deepcopy(content["application/json"]["example"])  # some tests spoil it
    return found


@cache
def gate() -> Gate:
    """The one gate that the generated tests ask for; its run is that of the other addresses."""
    return make_gate(team=make_team(may=("checkpoints.view_run",)))


@cache
def delivery() -> Message:
    """The one message to the one webhook of the gate's team."""
    webhook, _ = make_webhook(team=gate().team)
    made = outbox.test(webhook, by=SYSTEM)
    assert made is not None
    return made


def reader_of(path: str) -> User:
    """Somebody who gets what is there: a member of the gate's team, who manages its webhooks where it is about them."""
    return make_user("Ann Okafor", gate().team, may=("approvals.manage_webhooks",) if "/webhooks" in path else ())


def address(path: str, of: Gate | None = None) -> str:
    asked = of or gate()
    agent = gate().run.plan.agent
    values = {"gate_id": asked.pk, "run_id": asked.run_id, "seq": 1, "agent": agent, "effect_id": 1, "name": "go"}
    if "/webhooks" in path:
        values |= {"webhook_id": delivery().webhook_id, "delivery_id": delivery().pk}
    filled = re.sub(r"{(\w+)}", lambda match: str(values[match[1]]), path)
    of_thread = f"?agent={agent}&thread=t"
    query = {
        "/diff": "?to=1", "/comparisons": "?a=1&b=1", "/checkpoint": of_thread, "/threads/checkpoints": of_thread,
        "/histories": f"{of_thread}&id={UUID(int=1)}&channels={{}}",
    }  # fmt: skip
    return filled + next((asked for ending, asked in query.items() if path.endswith(ending)), "")


def ask(user: User, path: str, **query: Any) -> Any:
    """GET, and what JSON it answered. Fails for anything but 200."""
    answer = signed_in(user).get(path, query)
    assert answer.status_code == 200, answer.content
    return json.loads(answer.content)


def walk(user: User, path: str, **query: Any) -> list[Any]:
    found: list[Any] = []
    cursor: str | None = ""
    while cursor is not None:
        page = ask(user, path, **query, **({"cursor": cursor} if cursor else {}))
        assert len(page["items"]) <= query["limit"]
        found += page["items"]
        cursor = page["next"]
    return found


def save(run: Run, **writes: Any) -> Run:
    claim = claims.claim(run.pk, plan_ids=[run.plan_id], worker="test", lease=30)
    assert claim is not None
    store.save(store.load(run), writes, claim=claim, header=Header("step", "propose", "review"), status="queued")
    return Run.objects.get(pk=run.pk)


def make_exact_run(**fields: Any) -> Run:
    """A run whose state holds numbers that an encoder could spoil."""
    return make_run(state={"order": EXACT, "feedback": [1, 1.0, 2**64]}, **fields)
