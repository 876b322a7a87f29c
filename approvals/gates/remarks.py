"""Records comments on a gate, open or closed: an event, with the words beside it, which may be erased."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.db import transaction

from approvals.errors import Invalid, make_problem
from approvals.models import Gate
from checkpoints import actors
from checkpoints.models import Event
from checkpoints.values import canonical_json, characters

from . import mentions

KIND = "gate.remarked"
MOST = 4_000  # characters
MOST_EACH = 200  # of one person at one gate


def remark(gate: Gate, *, by: User, text: str, key: str) -> bool:
    """Comment on a gate; False where this person's form with this `key` was recorded before.

    Whoever may see the gate may comment; a comment decides nothing. Raises Invalid for no words, or too many.
    """
    words = checked(text, key)
    with transaction.atomic(durable=True):
        held = Gate.objects.select_for_update(of=["self"]).select_related("run", "policy", "team").get(pk=gate.pk)
        said = Event.objects.filter(run_id=held.run_id, kind=KIND, subject=held.subject, actor=actors.of_user(by).id)
        keys = [canonical_json.decode_canonical(bytes(each)).get("key") for each in said.values_list("data", flat=True)]
        if key in keys:
            return False
        if len(keys) >= MOST_EACH:
            raise Invalid([make_problem(f"You have already written {MOST_EACH} comments here.", pointer="/text")])
        held.found_by(by.pk)
        held.say("gate.remarked", by=actors.of_user(by), data={"key": key}, text=words)
        mentions.tell(held, words, by=by)
    return True


def checked(text: str, key: str) -> str:
    """Return what somebody writes at a gate as it is kept. Raises Invalid for no words, too many, or a bad key."""
    words = text.replace("\r\n", "\n").strip()
    if not words:
        raise Invalid([make_problem("Write something first.", pointer="/text")])
    if len(words) > MOST:
        raise Invalid([make_problem(f"Write at most {MOST:,} characters.", pointer="/text")])
    if not characters.is_key(key):
        raise Invalid([make_problem(characters.KEY_RULE, pointer="/key")])
    return words
