"""Writes versions of policies and tools: each change is a new one, and gates keep the one they were opened under."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from django.contrib.auth.models import Group, User
from django.db import transaction
from django.db.models import Max

from checkpoints.actors import SYSTEM, Actor
from checkpoints.audit import covered_rows
from checkpoints.events import event_log, event_proof
from checkpoints.events.event_proof import REQUIRED, ROWS
from checkpoints.values.canonical_json import decode_canonical, encode_canonical

from .policy import Policy
from .row_digests import are_proven
from .tool import Tool

Row = TypeVar("Row", Policy, Tool)


def newest(row: Row) -> Row:
    """Find the newest version of the same policy or tool, which counts for new gates."""
    return type(row).objects.filter(team=row.team_id, name=row.name).latest("version")


def write(row: Policy | Tool, *, by: Actor, groups: Iterable[Group] = (), people: Iterable[User] = ()) -> None:
    """Store an unsaved policy (decided by `groups` and `people`) or tool as the next version, with its event.

    A policy's stages and rules may ask others too. Then its groups and people are all of them, and its own stage, where
    it has no stages, is written out; so it is where people alone are named, since no groups mean the team's own people.
    The event is written from the stored row, read again, as the entered values are no proof of what counts.
    """
    with transaction.atomic():
        Group.objects.select_for_update(no_key=True).get(pk=row.team_id)  # the second of two at once is version 2
        versions = type(row).objects.filter(team=row.team_id, name=row.name)
        row.version = (versions.aggregate(newest=Max("version"))["newest"] or 0) + 1
        asked = _spread(row, groups, people) if isinstance(row, Policy) else None
        row.save(force_insert=True)
        if isinstance(row, Policy) and asked:
            row.groups.set(asked[0])
            row.people.set(asked[1])
        stored = type(row).objects.get(pk=row.pk)
        if isinstance(stored, Policy):
            stored.record("policy.changed", by=by)
        else:
            subject = f"tool:{stored.pk}"
            event_log.record(
                "tool.changed", subject=subject, by=by, team_id=stored.team_id, version=stored.version,
                data=stored.facts,
            )  # fmt: skip


def adopt(*, finish: bool) -> None:
    """Write the events of policies' versions that none under the present key holds.

    Those that hold under a former key are signed anew. Versions without any proof are taken as they are until proofs
    are required, once in a database: since `finish`, when no process of a release is left that writes versions, and
    orders to erase a text, without. Whoever writes one past Holdpoint later finds the door shut,
    also when the key is changed: that proofs are required stays so, whatever key signed it.
    """
    if not event_proof.seal_key():
        return
    required = bool(covered_rows.covering_events([REQUIRED]))
    with transaction.atomic():
        for policy in Policy.objects.select_related("team").order_by("pk"):
            if not are_proven(policy.rows, former=False) and (policy.proven or not required):
                policy.record("policy.adopted", by=SYSTEM)
        if finish and not required:
            event_log.record("seal.required", subject=REQUIRED, by=SYSTEM, data={ROWS: {}})


def _spread(row: Policy, groups: Iterable[Group], people: Iterable[User]) -> tuple[set[int], set[int]]:
    """Return the ids of all teams and people that a policy may ask, and complete its columns."""
    teams, named = {each.pk for each in groups}, {each.pk for each in people}
    stages = _decoded(row.stages)
    by_rules = [stage for rule in _decoded(row.rules) for stage in rule["require"].get("stages", ())]
    if not stages and (by_rules or (named and not teams)):
        mine = sorted(teams) if teams or named else [row.team_id]
        own = {"quorum": row.quorum, "groups": mine, "people": sorted(named)}
        stages = [{"roles": [own]}]
        row.stages = encode_canonical(stages).decode()
    if not stages:
        return teams, named
    roles = [role for stage in [*stages, *by_rules] for role in stage["roles"]]
    row.quorum = sum(role["quorum"] for stage in stages for role in stage["roles"])
    return {each for role in roles for each in role["groups"]}, {each for role in roles for each in role["people"]}


def _decoded(text: str) -> list[Any]:
    return decode_canonical(text.encode()) if text else []
