"""What is typed into forms of the administration is read as it was meant, and saving one unchanged changes nothing."""

from __future__ import annotations

import json
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.test import Client
from django.urls import reverse
from hypothesis import given
from hypothesis import strategies as st

from approvals.models import Policy, PolicyChange
from checkpoints import actors
from checkpoints.admin.durations import LONGEST, parse_duration, spell_duration
from checkpoints.models import Event, RetentionPolicy, Run
from checkpoints.runs import holds
from config.local import seed
from tests.agents.pages.test_run_page import text_of
from tests.checkpoints.retention.pruned_runs import ended, keep
from tests.config.administration.forms import saved_unchanged, standing
from tests.factories import REVIEWER, ann, bob, make_gate, make_policy, make_team, make_user, mira
from tests.harness.examples import first_alone
from tests.harness.racing_threads import race
from tests.harness.signed_in_clients import confirmed
from tests.harness.vouched_policies import as_written

HOUR = timedelta(hours=1)


@pytest.mark.parametrize(
    ("words", "span"),
    [
        ("2 days", 48 * HOUR), ("4 h", 4 * HOUR), ("90 min", 1.5 * HOUR), ("1:30", 1.5 * HOUR), ("04:00:00", 4 * HOUR),
        ("1 h 30 min", 1.5 * HOUR), ("4 hours and 30 minutes", 4.5 * HOUR), ("2d4h", 52 * HOUR),
        ("1 day, 4 h", 28 * HOUR), ("1.5 h", 1.5 * HOUR), ("2 weeks", 336 * HOUR), ("-4 h", -4 * HOUR),
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


def test_a_deadline_is_typed_and_shown_as_people_write_it(root: Any) -> None:
    team = make_team(may=REVIEWER)
    ann(team)
    old = make_policy(team, deadline=timedelta(days=2))
    address = reverse("admin:approvals_policy_change", args=[old.pk])
    form = standing(root.get(address).content.decode())
    assert form["deadline"] == "2 days"
    assert root.post(address, form | {"deadline": "1:30", "withdraw_after": "10 min"}).status_code == 302
    new = Policy.objects.named(old.name, team=team)
    assert (new.deadline, new.withdraw_after) == (1.5 * HOUR, HOUR / 6)
    listing = root.get(reverse("admin:approvals_policy_changelist"), {"team__id__exact": team.pk}).content.decode()
    assert 'class="field-within">1 h 30 min<' in listing


@pytest.mark.parametrize(
    ("field", "words", "said"),
    [
        ("deadline", "48", "“48” is not a duration. Write for example 2 days, 4 h, 90 min or 1:30"),
        ("deadline", "4000 days", "more than ten years"),
        ("withdraw_after", "1 min", "write 2 min or more"),
    ],
)
def test_a_duration_that_cannot_be_meant_is_refused_and_kept_as_typed(
    root: Any, field: str, words: str, said: str
) -> None:
    team = make_team(may=REVIEWER)
    ann(team)
    policy = make_policy(team)
    address = reverse("admin:approvals_policy_change", args=[policy.pk])
    form = standing(root.get(address).content.decode()) | {field: words}
    page = root.post(address, form).content.decode()
    assert said in page
    assert standing(page)[field] == words
    assert Policy.objects.filter(team=team).count() == 1


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
    for kind in ("hold", "technicalhold"):
        page = root.get(reverse(f"admin:checkpoints_{kind}_changelist"), {"run__id__exact": run.pk}).content.decode()
        assert str(held.checkpoint) not in page
        assert held.checkpoint is not None
        assert held.checkpoint.hex not in page
    assert root.get(reverse("admin:checkpoints_technicalhold_change", args=[held.pk])).status_code == 302


def as_root() -> Client:
    return confirmed(make_user("Root", superuser=True))


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


@pytest.mark.parametrize(
    ("words", "days", "said"),
    [
        ("12 weeks", 84, ""), ("90", 90, ""), ("1.5 days", 0, "Write whole days"),
        ("0", 0, "The shortest age is 1 day"), ("20 years", 0, "“20 years” is not a duration"),
    ],
)  # fmt: skip
def test_an_age_is_typed_in_days_or_weeks(root: Client, run: Run, words: str, days: int, said: str) -> None:
    policy = keep(run, keep_days=30)
    answer = root.post(change(policy), standing(root.get(change(policy)).content.decode()) | {"keep_days": words})
    newest = RetentionPolicy.objects.current().get(agent=run.plan.agent)
    assert (newest.version, newest.keep_days) == ((2, days) if days else (1, 30))
    assert said in text_of(answer.content.decode()) if said else answer.status_code == 302


def test_of_several_who_change_a_policy_at_once_one_does_and_the_others_are_told(run: Run) -> None:
    """The second met the unique constraint, as an error page."""
    policy = keep(run, keep_days=30)
    form = {"enabled": "on", "keep_days": "60 days", "keep_last": ""}
    answers = race([partial(client.post, change(policy), form) for client in [as_root() for _ in range(4)]])
    assert sorted(answer.status_code for answer in answers) == [200] * 3 + [302]
    assert versions(run) == [1, 2]
    said = [text_of(answer.content.decode()) for answer in answers if answer.status_code == 200]
    assert all("Nothing was saved. Version 2 was written since" in words for words in said)


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
    saved_unchanged(root, reverse("admin:approvals_policy_change", args=[old.pk]))
    new = Policy.objects.named(name, team=old.team)
    assert new.version == old.version + 1
    assert says(new) == says(old) == before
    assert told(new)["groups"] == before["decided by"]


def test_the_event_of_a_policy_says_what_is_stored_when_a_team_is_put_in_the_place_of_another(root: Any) -> None:
    finance, legal = make_team("Finance", may=REVIEWER), make_team("Legal", may=REVIEWER)
    mira(finance), bob(legal)
    old = make_policy(groups=(finance,))
    address = reverse("admin:approvals_policy_change", args=[old.pk])
    form = standing(root.get(address).content.decode()) | {"groups": [legal.pk]}
    assert root.post(address, form).status_code == 302
    change = PolicyChange.objects.get(base=old)  # other people would decide
    second = confirmed(make_user("Second", superuser=True))
    assert second.post(reverse("admin:approvals_policychange_confirmations", args=[change.pk])).status_code == 302
    new = Policy.objects.named(old.name, team=old.team)
    assert says(new)["decided by"] == told(new)["groups"] == [legal.name]
    assert says(old)["decided by"] == [finance.name]
