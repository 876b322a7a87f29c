"""The harness's own agent: a file, a gate, an order that can be undone, and a charge that cannot.

Before each request to the provider its key goes to a file, so that requests can be counted that the provider's own
idempotency hides.
"""

from __future__ import annotations

import os
import time
from decimal import Decimal
from typing import Any

import httpx
from django.conf import settings
from pydantic import BaseModel, Field

from agents import Action, Agent, Card, effect, gate, step, undo, validator
from agents.effects.classify_failure import send
from checkpoints.values import artifacts

from ..shared_files import SENDS, note_send

PAUSE = 0.2  # seconds before and after a request: so that what is killed is often in the middle of one


class Purchase(BaseModel):
    item: str
    amount: Decimal = Field(gt=0, le=1000, max_digits=7, decimal_places=2)


class Feedback(BaseModel):
    text: str
    by: str = ""


class Errand(Agent):
    name = "errand"
    version = "1"
    team = "Support"

    class State(BaseModel):
        item: str
        amount: Decimal
        purchase: Purchase | None = None
        slip: dict[str, Any] = {}
        feedback: list[Feedback] = []
        ordered: str = ""
        charged: str = ""
        told: str = ""

    @classmethod
    def title(cls, state: Any) -> str:
        return f"errand {state.item}"

    @step
    def look_around(self) -> dict[str, Any]:
        time.sleep(4 * PAUSE)
        return {}

    @validator
    def not_in_sevens(self, purchase: Purchase, feedback: list[Feedback]) -> str | None:
        """Refuse some amounts, until somebody said so: a repair."""
        return None if feedback or purchase.amount % 7 else "Not an amount that seven divides."

    @step(validators=[not_in_sevens], tries=2)
    def prepare(self, item: str, amount: Decimal, feedback: list[Feedback]) -> dict[str, Any]:
        """Ask for one less each time that somebody sent it back."""
        return {"purchase": Purchase(item=item, amount=max(amount - len(feedback), Decimal(1)))}

    @step(retry=1, backoff=0.5)
    def file_slip(self, purchase: Purchase) -> dict[str, Any]:
        text = f"{purchase.item} {purchase.amount}\n" * 800
        return {"slip": artifacts.keep(text.encode(), "text/plain")}

    @gate(policy="default", allows=["order", "charge"], edits=["purchase"], on_reject="prepare")
    def review(self, purchase: Purchase) -> Card:
        order = Action(id="order", effect="order", pointer="/purchase", pinned=["/amount"])
        return Card(title=f"Buy {purchase.item} for {purchase.amount}", actions=[order])

    @effect(undo="withdraw", idempotent=True)
    def order(self, purchase: Purchase, *, key: str) -> dict[str, Any]:
        body = {"item": purchase.item, "amount": str(purchase.amount)}
        return {"ordered": asked("order", "/orders", body, key)["id"]}

    @undo(idempotent=True)
    def withdraw(self, ordered: str) -> None:
        asked("withdraw", f"/orders/{ordered}/withdraw", {}, "")

    @effect(irreversible=True)
    def charge(self, purchase: Purchase, *, key: str) -> dict[str, Any]:
        """Pay for it. Nobody repeats this by themselves."""
        body = {"amount": f"{purchase.amount:.2f}", "currency": "EUR", "card": "4242"}
        return {"charged": asked("charge", "/charges", body, key)["id"]}

    @step
    def tell(self, ordered: str, charged: str) -> dict[str, Any]:
        return {"told": f"{ordered} {charged}"}


def asked(step: str, path: str, body: dict[str, Any], key: str) -> dict[str, Any]:
    """Send a request to the provider, written down first, and return its answer."""
    note_send(os.environ[SENDS], step, key)
    time.sleep(PAUSE)
    with httpx.Client(base_url=settings.SANDBOX_URL, timeout=10.0, trust_env=False) as client:
        request = client.build_request("POST", path, json=body, headers={"Idempotency-Key": key} if key else {})
        found: dict[str, Any] = send(client, request).json()
    time.sleep(PAUSE)
    return found
