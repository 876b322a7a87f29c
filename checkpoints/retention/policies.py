"""Finds the retention policy in force for an agent, and stores new versions."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q, QuerySet

from checkpoints.actors import Actor
from checkpoints.events import event_log
from checkpoints.models import RetentionPolicy
from checkpoints.postgresql.prepared_rows import prepared_statement
from checkpoints.postgresql.sql import run_sql

SKEW = timedelta(hours=1)  # by which a run's time may be later than its first checkpoint's: clocks differ

ByAgent = Mapping[str, RetentionPolicy]  # "" is the default


@prepared_statement
def _current() -> QuerySet[RetentionPolicy]:
    return RetentionPolicy.objects.current()


def current() -> dict[str, RetentionPolicy]:
    """Return the policies in force now, by agent."""
    return {policy.agent: policy for policy in _current()}


def named(ids: Mapping[str, int]) -> dict[str, RetentionPolicy]:
    """Return the policies of a prune, by agent, as they were at its dry run."""
    known = RetentionPolicy.objects.in_bulk(list(ids.values()))
    return {agent: known[pk] for agent, pk in ids.items()}


def policy_for(agent: str, policies: ByAgent) -> RetentionPolicy | None:
    """Return the policy of an agent's runs; None if there is none, or it deletes nothing."""
    policy = policies.get(agent) or policies.get("")
    if policy is None or not policy.enabled or (policy.keep_days is None and policy.keep_last is None):
        return None
    return policy


def touched(policies: ByAgent, at: datetime) -> Q:
    """Match the runs from which these policies could delete something, judging by the runs' own rows.

    Such a run has more than one checkpoint, more than `keep_last`, and began before the age that is kept.
    """
    found = Q(pk__in=[])
    for agent in policies:
        policy = policy_for(agent, policies)
        if policy is None:
            continue
        theirs = Q(plan__agent=agent) if agent else ~Q(plan__agent__in=[policy for policy in policies if policy])
        long = Q(seq__gt=policy.keep_last or 1)
        old = Q() if policy.keep_days is None else Q(created_at__lte=at - timedelta(days=policy.keep_days) + SKEW)
        found |= theirs & long & old
    return found


def lock(agent: str) -> None:
    """Lock this agent's policy against other writers until the end of the transaction."""
    run_sql("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", [f"retention:{agent}"])


def write(policy: RetentionPolicy, *, by: Actor) -> RetentionPolicy:
    """Store an unsaved policy as the next version of its agent's policy, with an event that repeats the stored row."""
    with transaction.atomic():
        lock(policy.agent)
        policy.version = RetentionPolicy.objects.next_version(policy.agent)
        policy.save(force_insert=True)
        stored = RetentionPolicy.objects.get(pk=policy.pk)
        event_log.record(
            "retention.changed", subject=f"retention:{stored.called}", by=by, version=stored.version, data=stored.facts
        )
    return policy
