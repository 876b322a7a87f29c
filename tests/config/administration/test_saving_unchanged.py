"""Whoever opens a form of the administration and saves it changes nothing by that."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.urls import reverse

from approvals.models import Policy, PolicyChange
from checkpoints.models import Event, RetentionPolicy
from config.local import seed
from tests.factories import REVIEWER, ann, bob, make_policy, make_team, make_user, mira
from tests.harness.signed_in_clients import confirmed
from tests.harness.vouched_policies import as_written

from .forms import saved_unchanged, standing


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
def root() -> Any:
    return confirmed(make_user("Root", superuser=True))


@pytest.fixture(scope="module")
def seeded() -> None:
    """The accounts, teams and policies that a new installation begins with."""
    seed.make_people("quite a long phrase")
    with as_written():
        seed.make_policies()


@pytest.mark.parametrize(("name", "team", "deciding"), seed.POLICIES)
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


def test_a_policy_that_other_teams_decide_keeps_them_when_its_deadline_is_changed(root: Any) -> None:
    finance, legal = make_team("Finance", may=REVIEWER), make_team("Legal", may=REVIEWER)
    mira(finance), bob(legal)
    old = make_policy(groups=(finance, legal))
    address = reverse("admin:approvals_policy_change", args=[old.pk])
    form = standing(root.get(address).content.decode()) | {"deadline": "04:00:00"}
    assert root.post(address, form).status_code == 302
    new = Policy.objects.named(old.name, team=old.team)
    assert says(new) | {"deadline": None} == says(old)
    assert told(new)["groups"] == sorted([finance.name, legal.name])
    assert new.created_at > old.created_at


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


def test_a_retention_policy_that_is_saved_unchanged_says_the_same_and_when_it_was_written(root: Any) -> None:
    old = RetentionPolicy.objects.create(agent="", version=900, keep_days=400, keep_finals=False, enabled=False)
    saved_unchanged(root, reverse("admin:checkpoints_retentionpolicy_change", args=[old.pk]))
    new = RetentionPolicy.objects.current().get(agent="")
    RetentionPolicy.objects.filter(agent="", version__gte=900).delete()
    assert (new.version, new.facts) == (901, old.facts)
    assert new.created_at > old.created_at


def test_a_team_and_an_account_that_are_saved_unchanged_are_the_same_and_tell_of_nothing(root: Any) -> None:
    team, other = make_team(), make_team("Finance", may=REVIEWER)
    user = ann(team, other)
    own = make_user("Sam Staff", team, may=("checkpoints.view_event", "approvals.decide_gate"))

    def now() -> list[Any]:
        people = [User.objects.get(pk=each.pk) for each in (user, own)]
        teams = [Group.objects.get(pk=each.pk) for each in (team, other)]
        return [
            *[(p.username, p.email, p.is_active, p.is_staff, {*p.groups.all()}, {*p.user_permissions.all()}, p.password)
              for p in people],
            *[(t.name, {*t.permissions.all()}, {*t.user_set.all()}) for t in teams],
        ]  # fmt: skip

    before = now()
    for name, row in (("group", team), ("group", other), ("user", user), ("user", own)):
        saved_unchanged(root, reverse(f"admin:auth_{name}_change", args=[row.pk]))
    assert now() == before
    subjects = [f"team:{team.pk}", f"team:{other.pk}", f"user:{user.pk}", f"user:{own.pk}"]
    assert not Event.objects.filter(kind__in=("team.changed", "user.changed"), subject__in=subjects).exists()
