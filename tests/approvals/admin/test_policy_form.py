"""The form of a policy: stages and rules are checked where they are written, and told in words."""

from __future__ import annotations

import html
import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from playwright.sync_api import Page

from approvals.models import Calendar, Policy, PolicyChange
from approvals.policy import required
from approvals.policy_changes import changes
from tests.factories import ann, decide, make_gate, make_policy, make_team, make_user
from tests.harness.browser_checks import check, watched
from tests.harness.signed_in_clients import signed_in

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
        return text.format(
            finance=self.finance.name, legal=self.legal.name, support=self.support.name, mira=self.mira.username
        )

    def post(self, **said: Any) -> str:
        newest = Policy.objects.filter(team=self.support, name=self.policy.name).latest("version")
        form = {
            "quorum": 1, "denials": 1, "on_expiry": "expire", "separation": "on", "reason_required": "on",
            "bulk_risk": "low", "auto_sample": 5, "leaves": "title", "remind_share": 25, "step_up_method": "any",
        }  # fmt: skip
        address = reverse("admin:approvals_policy_change", args=[newest.pk])
        answer = self.client.post(address, {**form, **said}, follow=True)
        for change in PolicyChange.objects.filter(team=self.support, status=PolicyChange.Status.WAITING):
            changes.confirm(change, by=make_user("Second", superuser=True))
        return html.unescape(answer.content.decode())

    def newest(self) -> Policy:
        return Policy.objects.filter(team=self.support, name=self.policy.name).latest("version")

    def form(self) -> dict[str, Any]:
        address = reverse("admin:approvals_policy_change", args=[self.newest().pk])
        return dict(self.client.get(address).context["adminform"].form.initial)


def test_axe_finds_no_fault_in_the_form(new_page: Callable[..., Page]) -> None:
    page = new_page(make_user("Root", superuser=True))
    said = watched(page)
    assert check(page, "/admin/approvals/policy/add/", said) == []


def test_stages_are_written_in_lines_and_told_in_words() -> None:
    world = World()
    text = world.names("2 of {finance}\n1 of {legal} or @{mira} and 1 of {support}")
    world.post(stages=text, denials=2)
    policy = world.newest()
    assert policy.version == 2
    assert (policy.quorum, policy.denials) == (4, 2)
    assert {each.pk for each in policy.groups.all()} == {world.finance.pk, world.legal.pk, world.support.pk}
    assert [each.pk for each in policy.people.all()] == [world.mira.pk]
    assert world.form()["stages"] == text
    assert (world.form()["groups"], world.form()["people"]) == ([], [])
    page = world.client.get(reverse("admin:approvals_policy_change", args=[policy.pk])).content.decode()
    told = world.names(
        "Two of {finance}, then one of {legal} or Mira Sandoval and one of {support}. Two rejections reject."
    )
    assert told in page


def test_rules_are_written_as_toml_and_written_back() -> None:
    world = World()
    world.post(rules=world.names(LARGE), people=[world.mira.pk])
    policy = world.newest()
    assert [rule.name for rule in required.rules_of(policy.rules)] == ["large"]
    assert {each.pk for each in policy.groups.all()} == {world.finance.pk, world.legal.pk}
    own = required.own(policy)
    assert [(role.teams, role.people) for role in own.stages[0].roles] == [((), (world.mira.pk,))]
    assert world.form()["rules"] == world.names(LARGE)
    assert (world.form()["groups"], world.form()["people"], world.form()["stages"]) == ([], [world.mira.pk], "")
    again = {name: world.form()[name] for name in ("rules", "stages", "groups", "people", "quorum")}
    world.post(**again)
    assert (world.newest().rules, world.newest().stages) == (policy.rules, policy.stages)


@pytest.mark.parametrize(
    ("field", "text", "said"),
    [
        ("rules", '[[rule]]\nname = "a"\nwhen = "amount <"', "Rule “a”, when, line 1, column 9: the condition ends"),
        ("rules", '[[rule]]\nname = "a"\nwhen = "amount * 2 < 5"\napprovals = 1', "A rule compares values"),
        ("rules", '[[rule]]\nname = "a"', "write when it counts"),
        ("rules", "[[rule", "This cannot be read as TOML"),
        ("rules", '[[rule]]\nname = "a"\nwhen = "true"\napprovals = 40', "Rule “a”: Now 3 people may decide"),
        ("rules", '[[rule]]\nname = "a"\nwhen = "true"\nstages = ["9 of {legal}"]', "and 9 must agree"),
        ("stages", "2 of Nobody", "Line 1: There is no team “Nobody”"),
        ("stages", "four eyes", "Line 1: “four eyes” is no role."),
        ("stages", "1 of {legal}\n9 of {finance}", "six of {finance} would be missing"),
        ("denials", "0", "Ensure this value is greater than or equal to 1"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_where_it_was_written(field: str, text: str, said: str) -> None:
    world = World()
    page = world.post(**{field: world.names(text) if "{" in text else text})
    assert world.names(said) in page
    assert world.newest().version == 1


def test_stages_and_teams_beside_them_are_refused() -> None:
    world = World()
    page = world.post(stages=world.names("1 of {legal}"), groups=[world.finance.pk])
    assert "Leave “Decided by” and “People” empty where stages say who decides." in page


def test_a_field_that_no_gate_had_is_warned_of_with_those_they_had() -> None:
    world = World()
    make_gate(policy=world.policy)
    page = world.post(rules='[[rule]]\nname = "gold"\nwhen = \'customer.tier == "gold"\'\napprovals = 1')
    assert "The rule “gold” reads “customer.tier”, which none of the last gates had." in page
    assert "They had: amount" in page
    assert world.newest().version == 2
    assert "which none" not in world.post(rules='[[rule]]\nname = "small"\nwhen = "amount < 5"\napprovals = 1')


def test_the_audit_holds_who_is_named_and_what_is_asked() -> None:
    from checkpoints.models import Event

    world = World()
    world.post(rules=world.names(LARGE), people=[world.mira.pk], denials=2)
    data = json.loads(bytes(Event.objects.get(subject=f"policy:{world.newest().pk}", kind="policy.changed").data))
    assert (data["people"], data["denials"]) == ([f"user:{world.mira.pk}"], 2)
    assert data["rules"] == world.newest().rules


def test_it_is_tried_on_the_last_gates_with_nothing_saved() -> None:
    world = World()
    decided = [decide(make_gate(policy=world.policy), ann(world.support)) for _ in range(2)]
    page = world.post(quorum=2, _simulate="Try it on the last gates")
    assert "Nothing is saved yet. On the last gates this would have meant:" in page
    assert all(f'href="/gates/{each.gate_id}/"' in page for each in decided)
    assert "2 of the last 2 gates would have asked two people." in page
    assert world.newest() == world.policy


def test_a_trial_of_a_policy_with_a_calendar_says_of_it_only_what_changes() -> None:
    """It said that the calendar would be none, and nothing of one that was chosen."""
    world = World()
    office, nights = (Calendar.objects.create(team=world.support, name=name) for name in ("office", "nights"))
    world.post(calendar=office.pk)
    assert world.newest().calendar == office
    for chosen, told in ((office, False), (nights, True)):
        page = world.post(calendar=chosen.pk, _simulate="Try it on the last gates")
        assert ("Counts working time of" in page.partition('id="simulated"')[2].partition("</div>")[0]) is told


def test_only_the_named_people_are_in_the_form_and_others_are_looked_up() -> None:
    world, other = World(), make_user("Other")
    world.post(people=[world.mira.pk])
    address = reverse("admin:approvals_policy_change", args=[world.newest().pk])
    page = world.client.get(address).content.decode()
    assert f'<option value="{world.mira.pk}" selected' in page
    assert f'<option value="{other.pk}"' not in page


def test_whoever_may_not_see_accounts_chooses_among_those_that_are_not_switched_off_or_named_already() -> None:
    world = World()
    world.post(people=[world.mira.pk])
    gone, there = make_user("Gone"), make_user("There")
    type(gone).objects.filter(pk__in=(gone.pk, world.mira.pk)).update(is_active=False)
    writer = make_user("Writer", may=("approvals.change_policy", "approvals.view_policy"))
    type(writer).objects.filter(pk=writer.pk).update(is_staff=True)
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
