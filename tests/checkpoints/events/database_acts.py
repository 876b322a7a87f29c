"""`python -m tests.checkpoints.events.database_acts ask|approve|newest` acts there."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from django.contrib.auth.models import User  # noqa: E402 - Django must be set up first

from approvals.models import Gate  # noqa: E402
from checkpoints.audit import sealer  # noqa: E402
from checkpoints.events import commit_order  # noqa: E402
from tests.factories import ann, decide, make_card, make_gate, make_team  # noqa: E402
from tests.harness.signed_in_clients import signed_in  # noqa: E402


def ask() -> dict[str, Any]:
    team = make_team()
    person = ann(team)
    gate = make_gate(team=team, card=make_card(title="Refund Marit Ellery"))
    session = signed_in(person).cookies["sessionid"].value
    return {"gate": gate.pk, "run": gate.run_id, "person": person.pk, "session": session}


def approve(gate: str, person: str) -> dict[str, Any]:
    decide(Gate.objects.get(pk=gate), User.objects.get(pk=person))
    return {}


def newest() -> dict[str, Any]:
    """Seal what there is, and say where readers of events are."""
    seal = sealer.seal_once()
    return {"cursor": str(commit_order.newest_cursor()), "seal": seal.pk if seal else None}


if __name__ == "__main__":
    verbs: dict[str, Callable[..., dict[str, Any]]] = {"ask": ask, "approve": approve, "newest": newest}
    sys.stdout.write(json.dumps(verbs[sys.argv[1]](*sys.argv[2:])))
