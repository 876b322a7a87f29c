"""What is typed into forms of the administration is read as it was meant, and saving one unchanged changes nothing."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.test import Client
from django.urls import reverse
from hypothesis import given
from hypothesis import strategies as st

from approvals.models import Policy
from checkpoints import actors
from checkpoints.admin.durations import LONGEST, parse_duration, spell_duration
from checkpoints.models import Event, RetentionPolicy, Run
from checkpoints.runs import holds
from config.local import seed
from tests.agents.pages.test_run_page import text_of
from tests.checkpoints.retention.pruned_runs import ended, keep
from tests.config.administration.forms import standing
from tests.factories import REVIEWER, ann, make_gate, make_policy, make_team, make_user
from tests.harness.examples import first_alone
from tests.harness.signed_in_clients import confirmed
from tests.harness.vouched_policies import as_written

HOUR = timedelta(hours=1)


@pytest.mark.parametrize(
    ("words", "span"),
    [
        ("2 days", 48 * HOUR), ("4 h", 4 * HOUR), ("90 min", 1.5 * HOUR), ("1:30", 1.5 * HOUR), ("04:00:00", 4 * HOUR),
        ("1 h 30 min", 1.5 * HOUR), ("4 hours and 30 minutes", 4.5 * HOUR), ("2d4h", 52 * HOUR),
        ("1 day, 4 h", 28 * HOUR), ("1.5 h", 1.5 * HOUR), ("2 weeks", 336 * HOUR),
    ],
)  # fmt: skip
def test_a_duration_is_read_as_people_write_it(words: str, span: timedelta) -> None:
    assert parse_duration(words) == span


@pytest.mark.parametrize(
    "words",
    ["48", "", "soon", "4 h nonsense", "1 month", "1,5 h", "nan h", "\u0663 h", "1 h " * 30, "9" * 50 + " h", "0.5 s"],
)
def test_what_is_no_duration_is_not_guessed_at(words: str) -> None:
    """`48` was taken as 48 seconds, and an Arabic three as three hours."""
    assert parse_duration(words) is None


@given(st.integers(min_value=0, max_value=int(LONGEST.total_seconds())))
def test_what_is_shown_is_read_as_the_same_duration(seconds: int) -> None:
    assert parse_duration(spell_duration(timedelta(seconds=seconds))) == timedelta(seconds=seconds)


@pytest.fixture(scope="module")
def root() -> Any:
    return confirmed(make_user("Root", superuser=True))


WRONG = (
    ("deadline", "48", "“48” is not a duration. Write for example 2 days, 4 h, 90 min or 1:30"),
    ("deadline", "4000 days", "more than ten years"),
    ("withdraw_after", "1 min", "write 2 min or more"),
)


def test_a_deadline_is_typed_and_shown_as_people_write_it_and_what_cannot_be_meant_is_kept_as_typed(root: Any) -> None:
    team = make_team(may=REVIEWER)
    ann(team)
    old = make_policy(team, deadline=timedelta(days=2))
    address = reverse("admin:approvals_policy_change", args=[old.pk])
    form = standing(root.get(address).content.decode())
    assert form["deadline"] == "2 days"
    for field, words, said in WRONG:
        page = root.post(address, form | {field: words}).content.decode()
        assert said in page
        assert standing(page)[field] == words
    assert root.post(address, form | {"deadline": "1:30", "withdraw_after": "10 min"}).status_code == 302
    new = Policy.objects.named(old.name, team=team)
    assert (new.version, new.deadline, new.withdraw_after) == (2, 1.5 * HOUR, HOUR / 6)
    listing = root.get(reverse("admin:approvals_policy_changelist"), {"team__id__exact": team.pk}).content.decode()
    assert 'class="field-within">1 h 30 min<' in listing


def text(client: Any, name: str, run: int) -> str:
    address = reverse(f"admin:checkpoints_{name}_changelist")
    return text_of(client.get(address, {"run__id__exact": run}).content.decode())


def test_legal_holds_are_not_among_those_of_open_gates(root: Any) -> None:
    """One legal hold was looked for among hundreds of open gates."""
    gate, by = make_gate(), actors.of_user(make_user("Lena Law"))
    run, seq = gate.run, gate.run.seq
    holds.name(run, seq, "Before the refund", by=by)
    held = holds.hold(run, seq, "Lawsuit 12/26", by=by)
    legal, technical = text(root, "hold", run.pk), text(root, "technicalhold", run.pk)
    assert "Lawsuit 12/26" in legal
    assert "Lena Law" in legal
    assert f"checkpoint {seq} “Before the refund”" in legal
    assert gate.title not in legal
    assert f"Open gate {gate.title}" in technical
    assert "Lawsuit" not in technical
    assert held.checkpoint is not None
    for each in (str(held.checkpoint), held.checkpoint.hex):
        assert each not in legal + technical
    assert root.get(reverse("admin:checkpoints_technicalhold_change", args=[held.pk])).status_code == 302


@pytest.fixture
def run() -> Run:
    return ended(3)


def change(policy: RetentionPolicy) -> str:
    return reverse("admin:checkpoints_retentionpolicy_change", args=[policy.pk])


def versions(run: Run) -> list[int]:
    found = RetentionPolicy.objects.filter(agent=run.plan.agent).order_by("version")
    return list(found.values_list("version", flat=True))


def test_a_policy_without_a_limit_is_refused_and_says_what_to_do(root: Client, run: Run) -> None:
    """It was saved, and deleted nothing: somebody believed that what was to go was gone."""
    policy = keep(run, keep_days=30)
    form = standing(root.get(change(policy)).content.decode())
    assert form["keep_days"] == "30 days"
    said = text_of(root.post(change(policy), form | {"keep_days": ""}).content.decode())
    assert "Set an age, a count, or both: without a limit nothing would ever be deleted." in said
    add = reverse("admin:checkpoints_retentionpolicy_add")
    assert root.post(add, {"agent": ended(3).plan.agent, "enabled": "on"}).status_code == 200
    assert versions(run) == [1]
    off = {name: value for name, value in form.items() if name != "enabled"} | {"keep_days": ""}
    assert root.post(change(policy), off).status_code == 302
    assert versions(run) == [1, 2]


def test_an_age_is_typed_in_days_or_weeks(root: Client, run: Run) -> None:
    policy, newest = keep(run, keep_days=30), RetentionPolicy.objects.current().filter(agent=run.plan.agent)
    form = standing(root.get(change(policy)).content.decode())
    for words, said in (
        ("1.5 days", "Write whole days"), ("0", "The shortest age is 1 day"),
        ("20 years", "“20 years” is not a duration"),
    ):  # fmt: skip
        assert said in text_of(root.post(change(policy), form | {"keep_days": words}).content.decode())
    for version, (words, days) in enumerate((("12 weeks", 84), ("90", 90)), 2):
        assert root.post(change(newest.get()), form | {"keep_days": words}).status_code == 302
        assert (newest.get().version, newest.get().keep_days) == (version, days)


def says(policy: Policy) -> dict[str, Any]:
    """All that a version says but which version it is, and who decides by it."""
    fresh = Policy.objects.get(pk=policy.pk)
    columns = [field.name for field in Policy._meta.concrete_fields]
    own = {name: getattr(fresh, name) for name in columns if name not in ("id", "version", "created_at")}
    return own | {"decided by": sorted(fresh.groups.values_list("name", flat=True))}


def told(policy: Policy) -> dict[str, Any]:
    event = Event.objects.get(kind="policy.changed", subject=f"policy:{policy.pk}")
    return dict(json.loads(bytes(event.data)))


@pytest.fixture(scope="module")
def seeded() -> None:
    """The accounts, teams and policies that a new installation begins with."""
    seed.make_people("quite a long phrase")
    with as_written():
        seed.make_policies()


@pytest.mark.parametrize(("name", "team", "deciding"), first_alone(seed.POLICIES, 2))
def test_a_policy_of_the_seed_that_is_saved_unchanged_is_decided_by_the_same_people(
    root: Any, seeded: None, name: str, team: str, deciding: list[str]
) -> None:
    """Who decides was taken for unchanged, as it was read of the old version: the new one had nobody of them."""
    old = Policy.objects.current().get(pk=Policy.objects.named(name, team=Group.objects.get(name=team)).pk)
    before = says(old)
    assert before["decided by"] == sorted(deciding)
    address = reverse("admin:approvals_policy_change", args=[old.pk])
    assert root.post(address, standing(root.get(address).content.decode())).status_code == 302
    new = Policy.objects.named(name, team=old.team)
    assert new.version == old.version + 1
    assert says(new) == says(old) == before
    assert told(new)["groups"] == before["decided by"]
