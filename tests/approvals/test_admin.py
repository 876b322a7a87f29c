"""In the administration a policy is written as a new version, and history is read only."""

from __future__ import annotations

from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.test import Client, RequestFactory
from django.urls import reverse

from approvals.admin import ReadOnlyAdmin
from approvals.models import Gate, Policy
from checkpoints.models import Event
from tests.factories import ann, decide, make_gate, make_policy, make_team, make_user, unique

HISTORY = ["gate", "proposal", "decision", "outcome", "grant"]


def signed_in() -> Client:
    """Return a client of an administrator."""
    client = Client()
    client.force_login(make_user("Root", superuser=True), backend="django.contrib.auth.backends.ModelBackend")
    return client


def form_of(policy: Policy, **changes: Any) -> dict[str, Any]:
    """What the policy's form posts."""
    return {"quorum": policy.quorum, "separation": "on", "deadline": "", "on_expiry": "expire", **changes}


def test_changing_a_policy_makes_a_version_and_leaves_the_one_that_gates_use() -> None:
    team, finance = make_team(), make_team("Finance")
    policy = make_policy(team)
    gate = make_gate(policy=policy)
    address = reverse("admin:approvals_policy_change", args=[policy.pk])
    answer = signed_in().post(address, form_of(policy, quorum=2, groups=[finance.pk]))
    assert answer.status_code == 302
    newest = Policy.objects.named("refunds", team=team)
    assert (newest.version, newest.quorum, list(newest.groups.all())) == (2, 2, [finance])
    policy = Policy.objects.get(pk=policy.pk)
    assert (policy.version, policy.quorum, list(policy.groups.all())) == (1, 1, [])
    assert Gate.objects.get(pk=gate.pk).policy_id == policy.pk
    assert Event.objects.filter(kind="policy.changed", subject=f"policy:{newest.pk}", team_id=team.pk).count() == 1


def test_a_new_policy_starts_at_version_one() -> None:
    team = make_team()
    name = unique("spending")
    form = {"team": team.pk, "name": name, "quorum": 1, "deadline": "01:00:00", "on_expiry": "expire"}
    assert signed_in().post(reverse("admin:approvals_policy_add"), form).status_code == 302
    assert Policy.objects.get(name=name).version == 1


def test_a_policy_without_people_is_refused() -> None:
    policy = make_policy()
    address = reverse("admin:approvals_policy_change", args=[policy.pk])
    answer = signed_in().post(address, form_of(policy, quorum=0))
    assert answer.status_code == 200
    assert b"greater than or equal to 1" in answer.content
    assert Policy.objects.filter(team=policy.team).count() == 1


@pytest.mark.parametrize("name", HISTORY)
def test_history_is_listed_and_shown_and_takes_no_change(name: str) -> None:
    team = make_team()
    gate = make_gate(team=team)
    decide(gate, ann(team))
    model = apps.get_model("approvals", name)
    row = model._default_manager.order_by("-pk").first()
    assert row is not None
    client = signed_in()
    assert client.get(reverse(f"admin:approvals_{name}_changelist")).status_code == 200
    change = reverse(f"admin:approvals_{name}_change", args=[row.pk])
    assert client.get(change).status_code == 200
    assert client.post(change, {"status": "open"}).status_code == 403
    assert client.post(reverse(f"admin:approvals_{name}_delete", args=[row.pk]), {"post": "yes"}).status_code == 403
    assert client.get(reverse(f"admin:approvals_{name}_add")).status_code == 403


def test_every_table_of_the_store_is_read_only_in_the_administration() -> None:
    request = RequestFactory().get("/admin/")
    request.user = make_user("Root", superuser=True)
    for model, page in admin.site._registry.items():
        if model._meta.app_label == "checkpoints":
            assert isinstance(page, ReadOnlyAdmin), model
            allowed = [page.has_add_permission(request), page.has_change_permission(request)]
            assert [*allowed, page.has_delete_permission(request)] == [False, False, False]


def test_a_policy_cannot_be_deleted() -> None:
    policy = make_policy()
    address = reverse("admin:approvals_policy_delete", args=[policy.pk])
    assert signed_in().post(address, {"post": "yes"}).status_code == 403
