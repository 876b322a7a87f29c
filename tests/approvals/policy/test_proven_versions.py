"""A version of a policy counts by its proven event.

Whoever had the application's role and no key inserted a milder version; every new gate was decided by it, and a
verification of everything found nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from django.db import ProgrammingError, connection

from agents.testing.trial import make_team as make_trial_team
from approvals.audit import evidence
from approvals.errors import NotVerifiable, UnprovenPolicy
from approvals.models import Policy, versions
from approvals.models.policy import RECOVERY
from checkpoints.actors import SYSTEM
from checkpoints.audit import covered_rows
from checkpoints.models import Event
from tests.factories import ann, decide, make_gate, make_policy, make_team
from tests.harness.altered_rows import altered, owner
from tests.harness.vouched_policies import as_written, slipped_in


def faults(*numbers: int) -> list[str]:
    return [str(problem) for problem in evidence.OF_POLICIES.check(numbers)]


@pytest.fixture
def slip_in() -> Iterator[Callable[..., Policy]]:
    """The next version of a policy as the application's role writes one: a row, and no event."""
    with ExitStack() as slipped:
        yield lambda team, **columns: slipped.enter_context(slipped_in(team, **columns))


def test_a_version_that_only_the_table_knows_is_named_and_opens_no_gate(slip_in: Callable[..., Policy]) -> None:
    policy = make_policy(quorum=2)
    forged = slip_in(policy.team)
    assert faults(policy.pk, forged.pk) == [f"policy {forged.pk}: {covered_rows.NO_EVENT}"]
    with pytest.raises(UnprovenPolicy, match=r"Version 2 of .*save it as it should be"):
        Policy.objects.named("refunds", team=policy.team)
    versions.write(Policy(team=policy.team, name="refunds", quorum=2), by=SYSTEM)
    assert Policy.objects.named("refunds", team=policy.team).version == 3


def test_a_gate_that_has_to_open_falls_back_to_the_newest_proven_version(slip_in: Callable[..., Policy]) -> None:
    """It went to the team's default, which asked one person instead of three and separated nobody."""
    policy = make_policy(quorum=3)
    make_policy(policy.team, name="default", separation=False)
    versions.write(Policy(team=policy.team, name="refunds", quorum=4), by=SYSTEM)
    slip_in(policy.team, version=3)
    found = Policy.objects.named("refunds", team=policy.team, strict=False)
    assert (found.name, found.version, found.quorum) == ("refunds", 2, 4)


def test_where_no_version_is_proven_it_opens_by_one_that_nothing_else_asks_by(slip_in: Callable[..., Policy]) -> None:
    """Such a run ended as failed: nobody was asked. The team's own names keep to what is proven."""
    team = make_team()
    slip_in(team, name="default", version=1)
    slip_in(team, version=1)
    for name in ("refunds", ""):
        found = Policy.objects.named(name, team=team, strict=False)
        assert (found.name, found.version, found.quorum, found.separation) == (RECOVERY, 1, 1, True)
        assert found.proven
        with pytest.raises(UnprovenPolicy):
            Policy.objects.named(name, team=team)


def test_a_gate_under_it_lets_nobody_decide(slip_in: Callable[..., Policy]) -> None:
    policy = make_policy()
    gate = make_gate(policy=policy)
    forged = slip_in(policy.team)
    with altered(gate, policy_id=forged.pk), pytest.raises(NotVerifiable):
        decide(gate, ann(policy.team))


def test_a_forged_event_vouches_for_nothing(slip_in: Callable[..., Policy]) -> None:
    policy = make_policy()
    forged = slip_in(policy.team)
    data = {**forged.facts, "rows": forged.rows, "proof": "00" * 32}
    Event.objects.create(
        kind="policy.changed", subject=f"policy:{forged.pk}", version=2, actor="user:1", data=json.dumps(data).encode()
    )
    assert not forged.proven
    assert any(covered_rows.UNPROVEN in fault for fault in faults(forged.pk))


@pytest.mark.parametrize("columns", [{"quorum": 1}, {"tokens_decide": False}], ids=lambda each: next(iter(each)))
def test_a_version_that_was_altered_opens_no_gate(columns: dict[str, Any]) -> None:
    policy = make_policy(quorum=2)
    with altered(policy, **columns):
        assert not Policy.objects.get(pk=policy.pk).proven
        assert "differs from what event" in faults(policy.pk)[0]


@pytest.mark.parametrize("statement", ["DELETE FROM approvals_policy", "UPDATE approvals_policy SET version = 9"])
def test_the_newest_version_cannot_be_taken_away_by_the_application(statement: str) -> None:
    with connection.cursor() as cursor, pytest.raises(ProgrammingError, match="permission denied"):
        cursor.execute(statement)


def test_what_the_product_writes_itself_is_proven() -> None:
    with as_written():
        team, settled = make_team(), make_team()
        built_in = Policy.objects.named("", team=team)
        versions.write(Policy(team=settled, name="refunds", quorum=2), by=SYSTEM, groups=[team], people=[ann(team)])
        trial = make_trial_team("Trial", [], quorum=1)
        for policy in (built_in, Policy.objects.get(team=settled), Policy.objects.get(team=trial)):
            assert Policy.objects.get(pk=policy.pk).proven
            assert faults(policy.pk) == []
            event = Event.objects.get(subject=f"policy:{policy.pk}")
            assert event.kind == "policy.changed"


@pytest.fixture
def unfinished() -> Iterator[None]:
    """A database from before proofs were required."""
    last = Event.objects.latest("pk").pk
    with owner() as made:
        made.execute("CREATE TEMP TABLE kept AS SELECT * FROM checkpoints_event WHERE kind = 'seal.required'")
        made.execute("DELETE FROM checkpoints_event WHERE kind = 'seal.required'")
        yield
        made.execute(
            "DELETE FROM checkpoints_event WHERE id > %s AND kind IN ('seal.required', 'policy.adopted')", [last]
        )
        made.execute("INSERT INTO checkpoints_event OVERRIDING SYSTEM VALUE TABLE kept")


@pytest.mark.whole_database
@pytest.mark.usefixtures("unfinished")
def test_versions_from_before_are_adopted_once(slip_in: Callable[..., Policy]) -> None:
    """And whoever slips one in after that finds the door shut."""
    team = make_team()
    before = slip_in(team, version=1)
    versions.adopt(finish=True)
    assert Policy.objects.named("refunds", team=team) == before
    assert faults(before.pk) == []
    after = slip_in(team)
    versions.adopt(finish=True)
    assert not after.proven


@pytest.mark.whole_database
@pytest.mark.usefixtures("unfinished")
def test_a_change_of_the_key_signs_anew_what_held_alone(slip_in: Callable[..., Policy], settings: Any) -> None:
    """With the old key gone no version held; the next migration took that for the beginning, and vouched for all."""
    team, key = make_team(), settings.HOLDPOINT_SEAL_KEY
    versions.write(Policy(team=team, name="refunds", quorum=2), by=SYSTEM)
    versions.adopt(finish=True)
    slipped = slip_in(team, name="wires", version=1)
    settings.HOLDPOINT_SEAL_KEY, settings.HOLDPOINT_OLD_SEAL_KEYS = "the next key", [key]
    versions.adopt(finish=False)
    settings.HOLDPOINT_OLD_SEAL_KEYS = []
    assert Policy.objects.named("refunds", team=team).quorum == 2
    missed = slip_in(team, name="mails", version=1)
    versions.adopt(finish=True)
    assert [slipped.proven, missed.proven] == [False, False]
