"""The client of the payment provider: each call returns when the effect is done.

Otherwise it raises EffectFailed (provably not done) or EffectUnknown.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Any
from urllib.parse import quote

import httpx

from agents import EffectFailed, EffectUnknown
from agents.examples.sending import ask, provider, read_facts

from .state import Payment, Refund

NO_SUCH_REFUND = "there is no such refund"  # what the provider says of a key that it never saw


def refund(wanted: Refund, key: str, *, reference: str) -> Payment:
    """Pay a refund; the same key pays it once, however often it is called. The provider keeps the `reference`."""
    body = wanted.model_dump(mode="json", include={"charge", "amount", "currency", "reason"})
    paid = ask("/refunds", body | {"reference": reference}, Payment, key=key)
    if paid.status != "succeeded":
        raise EffectFailed(f"The refund {paid.id} was {paid.status} after it had been made.")
    return paid


def cancel(refund_id: str) -> Payment:
    """Take a refund back; as often as it is asked."""
    return ask(f"/refunds/{refund_id}/cancel", {}, Payment)


def find(key: str) -> Payment | None:
    """Find the refund that was made under this key and stands; None if there is none.

    Raises EffectUnknown where the provider does not say. Only its own words count as a no: if a 404 of something else
    on the way were taken for one, the money would be paid twice.
    """
    try:
        with provider() as client:
            answer = client.get(f"/refunds/by-key/{quote(key, safe='')}")
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise EffectUnknown(f"The provider did not say: {error!r}") from error
    if answer.status_code == httpx.codes.NOT_FOUND and _facts(answer).get("error") == NO_SUCH_REFUND:
        return None
    if not answer.is_success:
        raise EffectUnknown(f"The provider did not say: HTTP {answer.status_code}")
    found = read_facts(answer, Payment)
    return found if found.status == "succeeded" else None


def refunded(charge: str, *, but: str) -> tuple[Decimal, str]:
    """(amount, currency): what has been given back of a charge, without the refunds of the reference `but`.

    Raises httpx.HTTPError where the provider does not say, ValueError where its answer cannot be read.
    """
    with provider() as client:
        facts = _facts(client.get(f"/charges/{quote(charge, safe='')}").raise_for_status())
    try:
        others = [each for each in facts["refunds"] if each["status"] == "succeeded" and each["reference"] != but]
        return sum((Decimal(each["taken"]) for each in others), Decimal(0)), str(facts["currency"])
    except (KeyError, TypeError, InvalidOperation) as error:
        raise ValueError(f"The provider's answer cannot be read: {error!r}") from error


def _facts(answer: httpx.Response) -> dict[str, Any]:
    """Return the answer's JSON object, an empty one if it is no object."""
    try:
        facts = answer.json()
    except ValueError:
        return {}
    return facts if isinstance(facts, dict) else {}
