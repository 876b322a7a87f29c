"""Durations are typed as people write them and shown the same way; what cannot be meant is refused in a sentence."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.urls import reverse
from hypothesis import given
from hypothesis import strategies as st

from approvals.models import Policy
from checkpoints.admin.durations import LONGEST, parse_duration, spell_duration
from tests.factories import REVIEWER, ann, make_policy, make_team, make_user
from tests.harness.signed_in_clients import confirmed

from .forms import standing

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
        ("deadline", "30 s", "less than a minute"),
        ("deadline", "4000 days", "more than ten years"),
        ("deadline", "-4 h", "less than a minute"),
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
