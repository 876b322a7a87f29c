"""Events for the policies that tests write past the administration, as if they had been written there.

A version counts only with its proven event. Most tests are about something else, and give a policy's row its columns.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.contrib.auth.models import Group
from django.db.models.signals import m2m_changed, post_save

from approvals.models import Policy
from approvals.models.policy import PolicyQuerySet
from checkpoints.actors import SYSTEM
from checkpoints.events import event_log
from checkpoints.events.event_proof import ROWS
from tests.harness.altered_rows import owner

_update = PolicyQuerySet.update
_on = True


def install() -> None:
    """Vouch for every version from now on that this process saves or updates."""
    post_save.connect(_saved, sender=Policy)
    for through in (Policy.groups.through, Policy.people.through):
        m2m_changed.connect(_linked, sender=through)
    PolicyQuerySet.update = _updated  # type: ignore[assignment,method-assign]


@contextmanager
def as_written() -> Iterator[None]:
    """Leave policies to what writes them, for as long as the block lasts."""
    global _on
    _on = False
    try:
        yield
    finally:
        _on = True


@contextmanager
def slipped_in(team: Group, **columns: Any) -> Iterator[Policy]:
    """Write the next version of a policy as the application's role can, a row and no event, for as long as it lasts."""
    with as_written():
        made = Policy.objects.create(team=team, **{"name": "refunds", "version": 2, "quorum": 1, **columns})
    try:
        yield made
    finally:
        with owner() as database:
            database.execute("DELETE FROM checkpoints_event WHERE subject = %s", [f"policy:{made.pk}"])
            database.execute("DELETE FROM approvals_policy WHERE id = %s", [made.pk])


def _vouch(number: int) -> None:
    if _on:
        policy = Policy.objects.get(pk=number)
        event_log.record(
            "policy.vouched", subject=f"policy:{number}", by=SYSTEM, version=policy.version,
            data={ROWS: policy.rows, "once": secrets.token_hex(4)},
        )  # fmt: skip


def _saved(instance: Policy, **_: Any) -> None:
    _vouch(instance.pk)


def _linked(instance: Any, action: str, **_: Any) -> None:
    if action.startswith("post_") and isinstance(instance, Policy):
        _vouch(instance.pk)


def _updated(found: PolicyQuerySet, **columns: Any) -> int:
    numbers = list(found.values_list("pk", flat=True))
    changed = _update(found, **columns)
    for number in numbers:
        _vouch(number)
    return changed
