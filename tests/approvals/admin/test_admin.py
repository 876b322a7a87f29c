"""In the administration a policy is written as a new version, checked where it is written, and history is read only."""

from __future__ import annotations

import datetime as dt
import html
import json
import re
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
    Gate,
    Message,
    Policy,
    PolicyChange,
    Tool,
    Webhook,
)  # fmt: skip
from approvals.policy import required
from approvals.policy_changes import changes
from checkpoints.actors import SYSTEM
from checkpoints.admin import ReadOnlyAdmin
from checkpoints.audit.sealer import seal_once
from checkpoints.models import Event, Hold, Prune, RetentionPolicy, Run, TechnicalHold, Verification
from tests.config.administration.forms import POLICY
from tests.factories import (
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
)  # fmt: skip
from tests.factories.tokens import make_token
from tests.harness.racing_threads import race
from tests.harness.signed_in_clients import confirmed, signed_in

pytestmark = pytest.mark.whole_database  # the lists' filters name every team and policy
APPS = ("checkpoints", "approvals", "agents")
# Written or ordered in the administration, each with tests of its own.
ORDERED = (ChannelAddress, Calendar, Policy, PolicyChange, RetentionPolicy, Prune, Hold, Webhook, Tool)
HISTORY = [model for model, page in admin.site._registry.items() if isinstance(page, ReadOnlyAdmin)]


def as_root() -> Client:
    return confirmed(make_user("Root", superuser=True))


def form_of(policy: Policy, **changes: Any) -> dict[str, Any]:
    return POLICY | {"quorum": policy.quorum, "hourly": policy.hourly} | changes


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
    form = form_of(policy, quorum=2, groups=[finance.pk], deadline="04:00:00")
    del form["separation"]
    assert as_root().post(address, form).status_code == 302
    confirm(team)  # other people decide from now on
    newest = Policy.objects.named("refunds", team=team)
    assert (newest.version, newest.quorum, list(newest.groups.all())) == (2, 2, [finance])
    policy = Policy.objects.get(pk=policy.pk)
    assert (policy.version, policy.quorum, list(policy.groups.all())) == (1, 1, [])
    assert Gate.objects.get(pk=gate.pk).policy_id == policy.pk
    data = json.loads(bytes(Event.objects.get(kind="policy.changed", subject=f"policy:{newest.pk}").data))
    assert (data["groups"], data["separation"], data["deadline"]) == ([finance.name], False, 4 * 3600)
    delete = reverse("admin:approvals_policy_delete", args=[newest.pk])
    assert as_root().post(delete, {"post": "yes"}).status_code == 403


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


def test_of_several_who_change_a_policy_at_once_one_does_and_the_others_are_told() -> None:
    """The last to save made the newest version of what it had read of an older one."""
    policy = make_policy(make_team(may=REVIEWER))
    ann(policy.team), bob(policy.team)
    address = reverse("admin:approvals_policy_change", args=[policy.pk])
    clients = [as_root() for _ in range(3)]
    answers = race([partial(each.post, address, form_of(policy, quorum=2)) for each in clients])
    assert sorted(answer.status_code for answer in answers) == [200] * 2 + [302]
    versions = Policy.objects.filter(team=policy.team, name=policy.name).values_list("version", flat=True)
    assert sorted(versions) == [1, 2]
    told = [answer.content.decode() for answer in answers if answer.status_code == 200]
    assert all("Nothing was saved. Version 2 was written since" in page for page in told)


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
    gate = make_gate(policy=make_policy(team, quorum=2, deadline=dt.timedelta(days=2)))
    listing, page = reverse("admin:approvals_policy_changelist") + f"?team__id__exact={team.pk}", f"/gates/{gate.pk}/"
    said = as_root().get(listing).content.decode()
    assert [each in said for each in ('class="field-within">2 days</td>', "too few")] == [True, False]
    assert "cannot be approved" not in signed_in(first).get(page).content.decode()
    own = make_gate(policy=gate.policy, run=make_run(team=team, started_by=first))
    said = signed_in(second).get(f"/gates/{own.pk}/").content.decode()
    assert "1 person may decide in" in said
    assert "not counting the requester" in said
    User.objects.filter(pk=second.pk).update(is_active=False)
    assert "1, too few" in as_root().get(listing).content.decode()
    assert "1 person may decide in" in signed_in(first).get(page).content.decode()


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


def made_effect(run: Run, gate: Gate) -> Effect:
    row = Effect.objects.create(run=run, step="pay", key=unique("key"), base=gate.checkpoint, token=1, input_digest=b"")
    row.intended(by=SYSTEM)
    return row


def some_of_each() -> dict[Any, Any]:
    """A row of each table, made as little else as can be, after many gates."""
    team = make_team()
    for _ in range(3):
        decide(gate := make_gate(team=team), ann(team))
    seal_once()
    run = gate.run
    failure = {"base": gate.checkpoint, "step": "pay", "attempt": 1, "error": "no"}
    own: dict[Any, Any] = {
        Verification: Verification.objects.create(by="user:7", status="passed", finished_at=timezone.now()),
        Effect: made_effect(run, gate),
        TechnicalHold: Hold.objects.get(run=run, kind="gate"),
        Message: Message.objects.create(kind="my_run", channel="email", user=ann(team), gate=gate),
        ChannelState: ChannelState.objects.get_or_create(channel="email", word="refused")[0],
        Token: make_token(ann(team))[0],
        Failure: Failure.objects.create(run=run, **failure),
    }
    return {model: own.get(model) or model._default_manager.order_by("-pk").first() for model in HISTORY}


def test_history_is_searched_and_shown_in_few_statements_and_takes_no_change(
    django_assert_max_num_queries: Any,
) -> None:
    rows, client = some_of_each(), as_root()
    for model, row in rows.items():
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}"
        listing, change = reverse(f"{name}_changelist"), reverse(f"{name}_change", args=[row.pk])
        with django_assert_max_num_queries(22):
            assert client.get(listing).status_code == 200
        assert client.get(listing, {"q": f"R-7 words \u0663 {row.pk}"}).status_code == 200, name
        said = client.get(change)
        assert said.status_code == 200
        assert not re.search(r"[0-9] ([ap]\.m\.)|, (noon|midnight)", said.content.decode())
    for there in (change, reverse(f"{name}_delete", args=[row.pk]), reverse(f"{name}_add")):
        assert client.post(there, {"post": "yes"}).status_code == 403
    client.post(listing, {"action": "delete_selected", "_selected_action": [str(row.pk)], "post": "yes"})
    assert model._default_manager.filter(pk=row.pk).exists()


def test_staff_see_history_only_with_the_permission_to_see_every_teams() -> None:
    """Whoever may view a team's runs as its member would see all teams' in the administration."""
    member = make_user("Sam Staff", make_team(), may=("approvals.view_gate", "checkpoints.view_run"), staff=True)
    client = signed_in(member)
    for name in ("checkpoints_run", "approvals_gate", "checkpoints_event", "agents_effect"):
        assert client.get(reverse(f"admin:{name}_changelist")).status_code == 403
    member.user_permissions.add(Permission.objects.get(codename="view_event"))
    client = signed_in(member)
    assert client.get(reverse("admin:checkpoints_run_changelist")).status_code == 200


def test_every_table_of_the_store_is_read_only_in_the_administration() -> None:
    request = RequestFactory().get("/admin/")
    request.user = make_user("Root", superuser=True)
    for model, page in admin.site._registry.items():
        if model._meta.app_label in APPS and model not in ORDERED:
            assert isinstance(page, ReadOnlyAdmin), model
            allowed = [page.has_add_permission(request), page.has_change_permission(request)]
            assert [*allowed, page.has_delete_permission(request)] == [False, False, False]


LARGE = '[[rule]]\nname = "large"\nwhen = "amount >= 1000"\nstages = ["2 of {finance}", "1 of {legal} or @{mira}"]\n'


class World:
    """Support's policy, with people of Finance and Legal beside."""

    def __init__(self) -> None:
        self.support, self.finance, self.legal = make_team("Support"), make_team("Finance"), make_team("Legal")
        self.mira = make_user("Mira Sandoval")
        for team in (self.support, self.finance, self.legal):
            for name in ("ann", "bob", "cid"):
                make_user(name, team)
        self.policy = make_policy(self.support)
        self.client: Client = signed_in(make_user("Root", superuser=True))

    def names(self, text: str) -> str:
        teams = {each: getattr(self, each).name for each in ("support", "finance", "legal")}
        return text.format(**teams, mira=self.mira.username)

    def post(self, **said: Any) -> str:
        newest = Policy.objects.filter(team=self.support, name=self.policy.name).latest("version")
        address = reverse("admin:approvals_policy_change", args=[newest.pk])
        answer = self.client.post(address, POLICY | said, follow=True)
        for change in PolicyChange.objects.filter(team=self.support, status=PolicyChange.Status.WAITING):
            changes.confirm(change, by=make_user("Second", superuser=True))
        return html.unescape(answer.content.decode())

    def newest(self) -> Policy:
        return Policy.objects.filter(team=self.support, name=self.policy.name).latest("version")

    def form(self) -> dict[str, Any]:
        address = reverse("admin:approvals_policy_change", args=[self.newest().pk])
        return dict(self.client.get(address).context["adminform"].form.initial)


def test_stages_are_written_in_lines_and_told_in_words() -> None:
    world = World()
    text = world.names("2 of {finance}\n1 of {legal} or @{mira} and 1 of {support}")
    world.post(stages=text)
    policy = world.newest()
    assert policy.version == 2
    assert policy.quorum == 4
    assert {each.pk for each in policy.groups.all()} == {world.finance.pk, world.legal.pk, world.support.pk}
    assert [each.pk for each in policy.people.all()] == [world.mira.pk]
    answer = world.client.get(reverse("admin:approvals_policy_change", args=[policy.pk]))
    form, page = answer.context["adminform"].form.initial, answer.content.decode()
    assert (form["stages"], form["groups"], form["people"]) == (text, [], [])
    told = "Two of {finance}, then one of {legal} or Mira Sandoval and one of {support}."
    assert world.names(told) in page


def test_rules_are_written_as_toml_held_by_the_audit_and_written_back() -> None:
    world = World()
    world.post(rules=world.names(LARGE), people=[world.mira.pk])
    policy = world.newest()
    data = json.loads(bytes(Event.objects.get(subject=f"policy:{policy.pk}", kind="policy.changed").data))
    assert (data["people"], data["rules"]) == ([f"user:{world.mira.pk}"], policy.rules)
    assert [rule.name for rule in required.rules_of(policy.rules)] == ["large"]
    own = required.own(policy)
    assert [(role.teams, role.people) for role in own.stages[0].roles] == [((), (world.mira.pk,))]
    form = world.form()
    assert form["rules"] == world.names(LARGE)
    assert (form["groups"], form["people"], form["stages"]) == ([], [world.mira.pk], "")
    again = {name: form[name] for name in ("rules", "stages", "groups", "people", "quorum")}
    world.post(**again)
    assert (world.newest().rules, world.newest().stages) == (policy.rules, policy.stages)


CANNOT_BE = [
    ("rules", '[[rule]]\nname = "a"\nwhen = "amount <"', "Rule “a”, when, line 1, column 9: the condition ends"),
    ("rules", '[[rule]]\nname = "a"', "write when it counts"),
    ("rules", "[[rule", "This cannot be read as TOML"),
    ("rules", '[[rule]]\nname = "a"\nwhen = "true"\napprovals = 40', "Rule “a”: Now 3 people may decide"),
    ("stages", "2 of Nobody", "Line 1: There is no team “Nobody”"),
    ("stages", "four eyes", "Line 1: “four eyes” is no role."),
    ("stages", "1 of {legal}\n9 of {finance}", "six of {finance} would be missing"),
]


def test_what_cannot_be_is_refused_where_it_was_written() -> None:
    world = World()
    for field, text, said in CANNOT_BE:
        page = world.post(**{field: world.names(text) if "{" in text else text})
        assert world.names(said) in page
    page = world.post(stages=world.names("1 of {legal}"), groups=[world.finance.pk])
    assert "Leave “Decided by” and “People” empty where stages say who decides." in page
    assert world.newest().version == 1


def test_a_field_that_no_gate_had_is_warned_of_with_those_they_had() -> None:
    world = World()
    make_gate(policy=world.policy)
    page = world.post(rules='[[rule]]\nname = "gold"\nwhen = \'customer.tier == "gold"\'\napprovals = 1')
    assert "The rule “gold” reads “customer.tier”, which none of the last gates had." in page
    assert "They had: amount" in page
    assert world.newest().version == 2
    assert "which none" not in world.post(rules='[[rule]]\nname = "small"\nwhen = "amount < 5"\napprovals = 1')


def test_it_is_tried_on_the_last_gates_with_nothing_saved() -> None:
    world = World()
    office, nights = (Calendar.objects.create(team=world.support, name=name) for name in ("office", "nights"))
    world.post(calendar=office.pk)
    world.policy = policy = world.newest()
    assert policy.calendar == office
    decided = [decide(make_gate(policy=world.policy), ann(world.support)) for _ in range(2)]
    page = world.post(quorum=2, calendar=office.pk, _simulate="Try it on the last gates")
    assert "Nothing is saved yet. On the last gates this would have meant:" in page
    assert all(f'href="/gates/{each.gate_id}/"' in page for each in decided)
    assert "2 of the last 2 gates would have asked two people." in page
    assert "Counts working time of" not in simulated(page), "of a calendar it says only what changes"
    page = world.post(calendar=nights.pk, _simulate="Try it on the last gates")
    assert "Counts working time of" in simulated(page)
    assert world.newest() == policy


def simulated(page: str) -> str:
    return page.partition('id="simulated"')[2].partition("</div>")[0]


def test_people_are_looked_up_or_chosen_among_those_that_are_not_switched_off_or_named_already() -> None:
    world = World()
    world.post(people=[world.mira.pk])
    gone, there = make_user("Gone"), make_user("There")
    page = world.client.get(reverse("admin:approvals_policy_change", args=[world.newest().pk])).content.decode()
    assert f'<option value="{world.mira.pk}" selected' in page
    assert f'<option value="{there.pk}"' not in page, "others are looked up"
    type(gone).objects.filter(pk__in=(gone.pk, world.mira.pk)).update(is_active=False)
    writer = make_user("Writer", may=("approvals.change_policy", "approvals.view_policy"), staff=True)
    page = signed_in(writer).get(reverse("admin:approvals_policy_change", args=[world.newest().pk])).content.decode()
    box = page[page.index('name="people"') :].partition("</select>")[0]
    offered = [f'<option value="{each.pk}"' in box for each in (world.mira, there, gone)]
    assert offered == [True, True, False]


def test_a_new_policy_begins_with_what_a_file_takes_where_it_says_nothing() -> None:
    """The pause was empty in the form: a policy that was saved untouched had none, and was milder than the default."""
    form = World().client.get(reverse("admin:approvals_policy_add")).context["adminform"].form
    columns = [each for each in Policy._meta.concrete_fields if each.has_default() and each.name in form.fields]
    shown = {each.name: form.get_initial_for_field(form.fields[each.name], each.name) for each in columns}
    asked_anew = {"tokens_decide", "stages", "rules", "escalation"}
    assert {name: value for name, value in shown.items() if name not in asked_anew} == {
        each.name: each.get_default() for each in columns if each.name not in asked_anew
    }
    assert "pause" in shown
    assert shown["tokens_decide"] is False
