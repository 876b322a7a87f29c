"""A retention policy says what is deleted: one that would delete nothing is refused, and no version is written over."""

from __future__ import annotations

from functools import partial

import pytest
from django.test import Client
from django.urls import reverse

from checkpoints.models import RetentionPolicy, Run
from tests.agents.views.run_page.test_run_page import text_of
from tests.checkpoints.retention.pruned_runs import ended, keep
from tests.factories import make_user
from tests.harness.racing_threads import race
from tests.harness.signed_in_clients import confirmed

from .forms import standing


def as_root() -> Client:
    return confirmed(make_user("Root", superuser=True))


@pytest.fixture(scope="module")
def root() -> Client:
    return as_root()


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
        ("12 weeks", 84, ""), ("90", 90, ""), ("400 days", 400, ""), ("1.5 days", 0, "Write whole days"),
        ("12 h", 0, "The shortest age is 1 day"), ("a while", 0, "“a while” is not a duration"),
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


def test_several_who_write_the_first_policy_of_an_agent_at_once_make_one(run: Run) -> None:
    form = {"agent": run.plan.agent, "enabled": "on", "keep_days": "60 days", "keep_last": ""}
    address = reverse("admin:checkpoints_retentionpolicy_add")
    answers = race([partial(client.post, address, form) for client in [as_root() for _ in range(3)]])
    assert sorted(answer.status_code for answer in answers) == [200, 200, 302]
    assert versions(run) == [1]


def test_an_older_version_is_read_and_leads_to_the_newest(root: Client, run: Run) -> None:
    """It was "does not exist, perhaps it was deleted?", though prunes name it."""
    old, newest = keep(run, keep_days=30), keep(run, keep_days=60)
    page = root.get(change(old)).content.decode()
    assert "which is only kept for the record" in page
    assert f'<a href="{change(newest)}">version 2</a>' in page
    assert 'name="_save"' not in page
    listing = reverse("admin:checkpoints_retentionpolicy_changelist")
    of_it = {"agent__exact": newest.agent}  # other tests make more policies than a page lists
    assert change(old) not in root.get(listing, of_it).content.decode()
    assert change(newest) in root.get(listing, of_it).content.decode()
    assert change(old) in root.get(listing, {"versions": "all", **of_it}).content.decode()
