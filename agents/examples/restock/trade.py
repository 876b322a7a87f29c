"""The clients for the supplier, the till and the mail, the outside world of the restock example.

Each returns when the effect is done, else raises EffectFailed (provably not done) or EffectUnknown.
"""

from __future__ import annotations

from agents import EffectUnknown
from agents.effects.http import send
from agents.examples.sending import deliver, provider

from .state import Message, Placed, Purchase, Repricing


def order(wanted: Purchase, key: str) -> Placed:
    """Order from the supplier; the same key orders once."""
    return _ask("/orders", wanted.model_dump(mode="json"), key)


def reprice(wanted: Repricing, key: str) -> Placed:
    """Put a price into the till; the same key does it once."""
    return _ask("/prices", wanted.model_dump(mode="json"), key)


def withdraw(kind: str, id: str) -> Placed:
    """Take one of "orders" or "prices" back; as often as it is asked."""
    return _ask(f"/{kind}/{id}/withdraw", {})


def mail(message: Message, key: str) -> None:
    """One mail to all of them, none of whom sees the others. Nobody to write to: nothing is sent."""
    if message.to:
        deliver(message.subject, message.text, key=key, bcc=message.to)


def _ask(path: str, body: dict[str, object], key: str = "") -> Placed:
    headers = {"Idempotency-Key": key} if key else {}
    with provider() as client:
        answer = send(client, client.build_request("POST", path, json=body, headers=headers))
    try:
        facts = answer.json()
        return Placed(id=facts["id"], status=facts["status"])
    except (KeyError, TypeError, ValueError) as error:  # it was taken, but nobody can say what came of it
        raise EffectUnknown(f"The answer cannot be read: {error!r}") from error
