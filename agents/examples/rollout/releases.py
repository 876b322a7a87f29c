"""The client for the servers' control plane, the outside world of the rollout example.

Each returns when the effect is done, else raises EffectFailed (provably not done) or EffectUnknown.
"""

from __future__ import annotations

from agents import EffectUnknown
from agents.effects.http import send
from agents.examples.sending import provider

from .state import Release, Stage


def release(wanted: Stage, key: str) -> Release:
    """Put a version on servers; the same key does it once."""
    return _ask("/releases", wanted.model_dump(mode="json"), key)


def withdraw(id: str) -> Release:
    """Take a release back; as often as it is asked."""
    return _ask(f"/releases/{id}/withdraw", {})


def _ask(path: str, body: dict[str, object], key: str = "") -> Release:
    headers = {"Idempotency-Key": key} if key else {}
    with provider() as client:
        answer = send(client, client.build_request("POST", path, json=body, headers=headers))
    try:
        facts = answer.json()
        return Release.model_validate({name: facts[name] for name in Release.model_fields})
    except (KeyError, TypeError, ValueError) as error:  # it was taken, but nobody can say what came of it
        raise EffectUnknown(f"The answer cannot be read: {error!r}") from error
