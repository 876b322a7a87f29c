"""In the administration a policy is written as a new version, and history is read only."""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group, Permission, User
from django.test import Client, RequestFactory
from django.urls import reverse
from django.utils import timezone

from agents.models import Effect, Failure, Token
from approvals.models import (
    Calendar,
    ChannelAddress,
    ChannelState,
    Delivery,
    Gate,
    Notice,
    Policy,
    PolicyChange,
    Tool,
    Webhook,
)
from checkpoints.actors import SYSTEM
from checkpoints.admin import ReadOnlyAdmin
from checkpoints.audit.sealer import seal_once
from checkpoints.models import Event, Hold, Prune, RetentionPolicy, Run, TechnicalHold, Verification
from tests.approvals.webhooks.made_webhooks import make_delivery
from tests.factories import (  # fmt: skip
    MEMBER,
    READER,
    REVIEWER,
    ann,
    bob,
    decide,
    make_gate,
    make_policy,
    make_run,
    make_team,
    make_user,
    mira,
    unique,
)
from tests.factories.tokens import make_token
from tests.harness.racing_threads import race
from tests.harness.signed_in_clients import confirmed, signed_in

pytestmark = pytest.mark.whole_database  # the lists' filters name every team and policy
APPS = ("checkpoints", "approvals", "agents")
ORDERED = (
    ChannelAddress,
    Calendar,
    Policy,
    PolicyChange,
    RetentionPolicy,
    Prune,
    Hold,
    Webhook,
    Tool,
)  # written or ordered in the administration, each with tests of its own
HISTORY = [model for model, page in admin.site._registry.items() if isinstance(page, ReadOnlyAdmin)]


def as_root() -> Client:
    """Return a client of an administrator."""
    return confirmed(make_user("Root", superuser=True))


def form_of(policy: Policy, **changes: Any) -> dict[str, Any]:
    """What the policy's form posts."""
    ticked = dict.fromkeys(("separation", "reason_required", "tokens_decide"), "on")
    limits = {"hourly": policy.hourly, "pause": "10 min", "bulk_risk": "low", "remind_share": 25, "leaves": "title"}
    return {"quorum": policy.quorum, "deadline": "", "on_expiry": "expire", **ticked, **limits, **changes}


def confirm(team: Group) -> None:
    """Confirm the team's change of a policy that waits, as another administrator."""
    change = PolicyChange.objects.get(team=team, status="waiting")
    assert as_root().post(reverse("admin:approvals_policychange_confirmations", args=[change.pk])).status_code == 302


def test_changing_a_policy_makes_a_version_and_leaves_the_one_that_gates_use() -> None:
    team, finance = make_team(), make_team("Finance", may=REVIEWER)
    mira(finance), bob(finance)
    policy = make_policy(team)
    gate = make_gate(policy=policy)
    address = reverse("admin:approvals_policy_change", args=[policy.pk])
    answer = as_root().post(address, form_of(policy, quorum=2, groups=[finance.pk]))
    assert answer.status_code == 302
    confirm(team)  # other people decide from now on
    newest = Policy.objects.named("refunds", team=team)
    assert (newest.version, newest.quorum, list(newest.groups.all())) == (2, 2, [finance])
    policy = Policy.objects.get(pk=policy.pk)
    assert (policy.version, policy.quorum, list(policy.groups.all())) == (1, 1, [])
    assert Gate.objects.get(pk=gate.pk).policy_id == policy.pk
    assert Event.objects.filter(kind="policy.changed", subject=f"policy:{newest.pk}", team_id=team.pk).count() == 1


def test_a_milder_version_from_the_page_of_a_new_policy_is_said_to_wait() -> None:
    """The page said that the policy was added, and its history too, though nothing counted yet."""
    team = make_team(may=REVIEWER)
    ann(team), bob(team), mira(team)
    policy = make_policy(team, quorum=2)
    client = as_root()
    posted = form_of(policy, team=team.pk, name="refunds", quorum=1)
    page = client.post(reverse("admin:approvals_policy_add"), posted, follow=True).content.decode()
    change = PolicyChange.objects.get(team=team, status="waiting")
    assert f"/approvals/policychange/{change.pk}/" in page
    assert "a second person has to confirm it" in page
    assert "added successfully" not in page
    assert not LogEntry.objects.filter(object_id=str(policy.pk)).exists()


def test_a_new_policy_starts_at_version_one() -> None:
    team = make_team(may=REVIEWER)
    ann(team)
    name = unique("spending")
    form = {
        "team": team.pk,
        "name": name,
        "quorum": 1,
        "deadline": "01:00:00",
        "on_expiry": "expire",
        "bulk_risk": "low",
    }
    assert as_root().post(reverse("admin:approvals_policy_add"), form).status_code == 302
    assert Policy.objects.get(name=name).version == 1


def test_the_audit_holds_all_that_a_new_version_says() -> None:
    """Who decides, whether duties are separated and until when were changed without a trace."""
    team, finance = make_team(), make_team("Finance", may=REVIEWER)
    mira(finance)
    policy = make_policy(team)
    form = form_of(policy, groups=[finance.pk], deadline="04:00:00")
    del form["separation"]
    assert as_root().post(reverse("admin:approvals_policy_change", args=[policy.pk]), form).status_code == 302
    confirm(team)
    data = json.loads(bytes(Event.objects.get(kind="policy.changed", team_id=team.pk).data))
    assert (data["groups"], data["separation"], data["deadline"]) == ([finance.name], False, 4 * 3600)


def test_of_several_who_change_a_policy_at_once_one_does_and_the_others_are_told() -> None:
    """The last to save made the newest version of what it had read of an older one."""
    policy = make_policy(make_team(may=REVIEWER))
    ann(policy.team), bob(policy.team)
    address = reverse("admin:approvals_policy_change", args=[policy.pk])
    clients = [as_root() for _ in range(6)]
    answers = race([partial(each.post, address, form_of(policy, quorum=2)) for each in clients])
    assert sorted(answer.status_code for answer in answers) == [200] * 5 + [302]
    versions = Policy.objects.filter(team=policy.team, name=policy.name).values_list("version", flat=True)
    assert sorted(versions) == [1, 2]


def test_several_who_write_a_policy_anew_at_once_make_as_many_versions() -> None:
    """The second met the unique constraint, as an error page."""
    team = make_team(may=REVIEWER)
    ann(team)
    form = {"team": team.pk, "name": "spending", "quorum": 1, "on_expiry": "expire", "bulk_risk": "low"}
    address = reverse("admin:approvals_policy_add")
    answers = race([partial(each.post, address, form) for each in [as_root() for _ in range(3)]])
    assert [answer.status_code for answer in answers] == [302] * 3
    assert sorted(Policy.objects.filter(team=team).values_list("version", flat=True)) == [1, 2, 3]


def test_a_policy_that_nobody_could_meet_is_refused_and_says_how_many_may_decide() -> None:
    """A quorum of three in a team of one was saved, and no gate of it could ever be approved."""
    team, other = make_team(may=REVIEWER), make_team("Finance", may=READER)
    ann(team), bob(other), make_user("Mira Sandoval", other, may=("approvals.decide_gate",))
    off = make_user("Eve", team)
    User.objects.filter(pk=off.pk).update(is_active=False)
    policy, client = make_policy(team), as_root()
    address = reverse("admin:approvals_policy_change", args=[policy.pk])
    said = client.post(address, form_of(policy, quorum=3, groups=[team.pk, other.pk])).content.decode()
    assert "Now 2 people may decide in" in said
    assert "and 3 must agree" in said
    assert "Now 1 person may decide in" in client.post(address, form_of(policy, quorum=2)).content.decode()
    assert Policy.objects.filter(team=team).count() == 1
    client.post(address, form_of(policy, quorum=2, groups=[team.pk, other.pk]))
    change = PolicyChange.objects.get(team=team)
    answer = as_root().post(reverse("admin:approvals_policychange_confirmations", args=[change.pk]), follow=True)
    assert "If one of them starts a run, its gates cannot be approved." in answer.content.decode()
    assert Policy.objects.filter(team=team).count() == 2


def test_a_policy_that_cannot_be_met_any_more_says_so_in_the_list_and_at_its_gates() -> None:
    team = make_team(may=(*MEMBER, "approvals.decide_gate"))
    first, second = ann(team), bob(team)
    gate = make_gate(policy=make_policy(team, quorum=2))
    listing, page = reverse("admin:approvals_policy_changelist") + f"?team__id__exact={team.pk}", f"/gates/{gate.pk}/"
    assert "too few" not in as_root().get(listing).content.decode()
    assert "cannot be approved" not in signed_in(first).get(page).content.decode()
    User.objects.filter(pk=second.pk).update(is_active=False)
    assert "1, too few" in as_root().get(listing).content.decode()
    assert "1 person may decide in" in signed_in(first).get(page).content.decode()


def test_whoever_started_the_run_does_not_count_for_its_gates() -> None:
    team = make_team(may=(*MEMBER, "approvals.decide_gate"))
    starter, second = ann(team), bob(team)
    run = make_run(team=team, started_by=starter)
    gate = make_gate(policy=make_policy(team, quorum=2), run=run)
    said = signed_in(second).get(f"/gates/{gate.pk}/").content.decode()
    assert "1 person may decide in" in said
    assert "not counting the requester" in said


def test_the_list_of_policies_says_in_a_word_when_a_gate_ends_and_how() -> None:
    """The last column was a sentence of eight lines, and pushed the one behind it out of the window."""
    policy = make_policy(deadline=dt.timedelta(days=2))
    listing = reverse("admin:approvals_policy_changelist") + f"?team__id__exact={policy.team_id}"
    said = as_root().get(listing).content.decode()
    assert 'class="field-within">2 days</td>' in said
    assert 'class="field-then">expire</td>' in said


def test_the_list_of_policies_asks_once_who_may_decide(django_assert_max_num_queries: Any) -> None:
    for _ in range(10):
        make_policy(groups=(make_team("Finance"),))
    client = as_root()
    with django_assert_max_num_queries(12):
        client.get(reverse("admin:approvals_policy_changelist"))


def test_an_older_version_of_a_policy_is_read_and_leads_to_the_newest() -> None:
    """Saving from an old version's page made the newest version out of the old values."""
    team = make_team(may=REVIEWER)
    ann(team), bob(team)
    old, newest = make_policy(team), make_policy(team, version=2, quorum=2)
    client, addresses = as_root(), {}
    for each in (old, newest):
        addresses[each] = reverse("admin:approvals_policy_change", args=[each.pk])
    said = client.get(addresses[old]).content.decode()
    assert f'<a href="{addresses[newest]}">version 2</a>' in said
    assert 'name="_save"' not in said
    assert 'name="_save"' in client.get(addresses[newest]).content.decode()
    said = client.post(addresses[old], form_of(old)).content.decode()
    assert "Nothing was saved. Version 2 was written since" in said
    assert f'<a href="{addresses[newest]}">version 2</a>' in said
    assert Policy.objects.filter(team=team).count() == 2


def test_times_are_said_with_24_hours_and_the_zone() -> None:
    """It was "3:04 p.m.", of no zone."""
    gate = make_gate()
    Gate.objects.filter(pk=gate.pk).update(opened_at=dt.datetime(2026, 3, 2, 15, 4, 5, tzinfo=dt.UTC))
    client = as_root()
    pages = [reverse("admin:approvals_gate_change", args=[gate.pk]), reverse("admin:approvals_gate_changelist")]
    for page in pages:
        assert "2 Mar 2026, 15:04:05 UTC" in client.get(page).content.decode()
    client.cookies["hp-zone"] = "Asia/Kolkata"
    for page in pages:
        assert "2 Mar 2026, 20:34:05 IST" in client.get(page).content.decode()


def test_a_policy_without_people_is_refused() -> None:
    policy = make_policy()
    address = reverse("admin:approvals_policy_change", args=[policy.pk])
    answer = as_root().post(address, form_of(policy, quorum=0))
    assert answer.status_code == 200
    assert b"greater than or equal to 1" in answer.content
    assert Policy.objects.filter(team=policy.team).count() == 1


def made_effect(run: Run, gate: Gate) -> Effect:
    row = Effect.objects.create(run=run, step="pay", key=unique("key"), base=gate.checkpoint, token=1, input_digest=b"")
    row.intended(by=SYSTEM)
    return row


def some_of(model: Any) -> Any:
    """A row of this table, made as little else as can be."""
    team = make_team()
    gate = make_gate(team=team)
    decide(gate, ann(team))
    seal_once()
    run = gate.run
    own: dict[Any, Callable[[], Any]] = {
        Verification: lambda: Verification.objects.create(by="user:7", status="passed", finished_at=timezone.now()),
        Effect: lambda: made_effect(run, gate),
        TechnicalHold: lambda: Hold.objects.get(run=run, kind="gate"),
        Delivery: lambda: make_delivery()[0],
        Notice: lambda: Notice.objects.create(kind="test", channel="email", user=ann(team), gate=gate),
        ChannelState: lambda: ChannelState.objects.get_or_create(channel="email", word="refused")[0],
        Token: lambda: make_token(ann(team))[0],
        Failure: lambda: Failure.objects.create(run=run, base=gate.checkpoint, step="pay", attempt=1, error="no"),
    }
    return own[model]() if model in own else model._default_manager.order_by("-pk").first()


@pytest.mark.parametrize("model", HISTORY, ids=lambda model: model._meta.label)
def test_history_is_listed_searched_and_shown_and_takes_no_change(model: Any) -> None:
    row = some_of(model)
    assert row is not None
    client = as_root()
    name = f"admin:{model._meta.app_label}_{model._meta.model_name}"
    listing = reverse(f"{name}_changelist")
    assert client.get(listing).status_code == 200
    for term in ("7", "R-7", "gate:7", "R-", "some words", "\u0663", str(row.pk)):
        assert client.get(listing, {"q": term}).status_code == 200, term
    change = reverse(f"{name}_change", args=[row.pk])
    said = client.get(change)
    assert said.status_code == 200
    assert not re.search(r"[0-9] ([ap]\.m\.)|, (noon|midnight)", said.content.decode())
    assert client.post(change, {"status": "open"}).status_code == 403
    assert client.post(reverse(f"{name}_delete", args=[row.pk]), {"post": "yes"}).status_code == 403
    assert client.get(reverse(f"{name}_add")).status_code == 403
    assert client.post(reverse(f"{name}_add"), {}).status_code == 403
    action = {"action": "delete_selected", "_selected_action": [str(row.pk)], "post": "yes"}
    client.post(listing, action)
    assert model._default_manager.filter(pk=row.pk).exists()


def test_the_links_of_a_run_and_a_gate_lead_to_lists_of_what_is_theirs() -> None:
    team = make_team()
    gate, other = make_gate(team=team), make_gate(team=team)
    decide(gate, ann(team))
    client = as_root()
    followed = 0
    for model, row in ((gate.run._meta, gate.run), (gate._meta, gate)):
        said = client.get(reverse(f"admin:{model.app_label}_{model.model_name}_change", args=[row.pk])).content.decode()
        for address in set(re.findall(r'href="(/admin/[a-z_/]+\?[a-z_]+=\d+)"', said)):
            answer = client.get(address)
            assert answer.status_code == 200, address
            assert f"/gates/{other.pk}/" not in answer.content.decode()
            followed += 1
    assert followed >= 7


def test_staff_see_history_only_with_the_permission_to_see_every_teams() -> None:
    """Whoever may view a team's runs as its member would see all teams' in the administration."""
    member = make_user("Sam Staff", make_team(), may=("approvals.view_gate", "checkpoints.view_run"))
    User.objects.filter(pk=member.pk).update(is_staff=True)
    client = signed_in(member)
    for name in ("checkpoints_run", "approvals_gate", "checkpoints_event", "agents_effect"):
        assert client.get(reverse(f"admin:{name}_changelist")).status_code == 403
    member.user_permissions.add(Permission.objects.get(codename="view_event"))
    client = signed_in(member)
    assert client.get(reverse("admin:checkpoints_run_changelist")).status_code == 200


def test_a_list_costs_the_same_number_of_statements_however_many_rows_it_shows(
    django_assert_max_num_queries: Any,
) -> None:
    team = make_team()
    for _ in range(20):
        decide(make_gate(team=team), ann(team))
    client = as_root()
    for model in HISTORY:
        with django_assert_max_num_queries(22):
            client.get(reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist"))


def test_the_administration_says_whose_it_is_and_leads_back() -> None:
    said = as_root().get("/admin/").content.decode()
    assert "Holdpoint" in said
    for address in ("/", "/runs/", "/audit/"):
        assert f'<a href="{address}">' in said


def test_every_table_of_the_store_is_read_only_in_the_administration() -> None:
    request = RequestFactory().get("/admin/")
    request.user = make_user("Root", superuser=True)
    for model, page in admin.site._registry.items():
        if model._meta.app_label in APPS and model not in ORDERED:
            assert isinstance(page, ReadOnlyAdmin), model
            allowed = [page.has_add_permission(request), page.has_change_permission(request)]
            assert [*allowed, page.has_delete_permission(request)] == [False, False, False]


def test_a_policy_cannot_be_deleted() -> None:
    policy = make_policy()
    address = reverse("admin:approvals_policy_delete", args=[policy.pk])
    assert as_root().post(address, {"post": "yes"}).status_code == 403


def test_kinds_are_named_in_words() -> None:
    """Operators read `my_run` and `asked`, in the list, its filter and the page of one message."""
    notice = Notice.objects.create(kind="my_run", channel="email", user=make_user("Ann Okafor"))
    client = signed_in(make_user("Root", superuser=True))
    for page in ("?kind=my_run", f"{notice.pk}/change/"):
        shown = client.get(f"/admin/approvals/notice/{page}").content.decode()
        assert "own run" in shown
        assert ">my_run<" not in shown
        assert ">asked<" not in shown
    assert client.get("/admin/approvals/notice/?kind=asked").content.decode().count("own run") == 1, "in the filter"
