"""A milder version of a policy or a tool counts once a second person confirms it, and only where it is vouched for."""

from __future__ import annotations

import html
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.urls import reverse

from approvals.errors import NotAllowed
from approvals.models import Policy, PolicyChange, Tool
from approvals.policy_changes import changes, tool_changes
from approvals.policy_changes.changes import ChangeEnded, MayNotConfirm, NamesGone, SamePerson
from checkpoints.models import Event
from checkpoints.values.canonical_json import decode_canonical, encode_canonical
from tests.approvals.tools.registered_tools import make_tool
from tests.config.administration.forms import POLICY
from tests.factories import ann, bob, decide, make_gate, make_policy, make_team, make_user
from tests.harness.altered_rows import altered
from tests.harness.racing_threads import race
from tests.harness.signed_in_clients import confirmed
from tests.harness.vouched_policies import slipped_in

HOUR = timedelta(hours=1)
WRITES = ("approvals.change_policy", "approvals.add_policy")


def writer(name: str) -> User:
    """A person of the staff who may write policies."""
    return make_user(name, may=WRITES, staff=True)


@pytest.fixture
def team() -> Group:
    team = make_team()
    make_policy(team, quorum=2)
    return team


def saved(team: Group, by: User, **settings: Any) -> Policy | PolicyChange:
    return changes.save(Policy(team=team, name="refunds", **{"quorum": 2, **settings}), groups=[], people=[], by=by)


def in_force(team: Group) -> Policy:
    return Policy.objects.filter(team=team, name="refunds").latest("version")


def test_a_stricter_version_or_a_new_name_as_strict_as_one_of_the_team_counts_at_once(team: Group) -> None:
    made = saved(team, writer("Ann"), quorum=3)
    assert isinstance(made, Policy)
    assert (in_force(team).version, in_force(team).quorum) == (2, 3)
    make_gate(policy=in_force(team))
    make_policy(team, name="large", quorum=2)
    assert isinstance(named(team, writer("Ann"), "another", quorum=2), Policy)


def test_a_milder_one_waits_until_somebody_else_confirms_it(team: Group) -> None:
    ann, mira = writer("Ann"), writer("Mira")
    change = saved(team, ann, quorum=1)
    assert isinstance(change, PolicyChange)
    assert in_force(team).version == 1
    with pytest.raises(SamePerson):
        changes.confirm(change, by=ann)
    made = changes.confirm(change, by=mira)
    assert (in_force(team), made.quorum) == (made, 1)
    kinds = Event.objects.filter(team_id=team.pk, kind__startswith="policy.").values_list("kind", "actor")
    assert list(kinds.order_by("id")) == [("policy.proposed", f"user:{ann.pk}"), ("policy.changed", f"user:{mira.pk}")]


def named(team: Group, by: User, name: str, *, groups: Sequence[Group] = (), **settings: Any) -> Policy | PolicyChange:
    return changes.save(Policy(team=team, name=name, **settings), groups=groups, people=[], by=by)


def test_a_new_name_that_asks_less_than_every_policy_of_the_team_waits(team: Group) -> None:
    """One person wrote a policy of another name, decided by another team and without separation, and it counted."""
    make_policy(team, name="large", quorum=3)
    make_gate(policy=Policy.objects.get(team=team, name="refunds"))
    ann, mira, others = writer("Ann"), writer("Mira"), make_team("Others")
    less: list[dict[str, Any]] = [{"quorum": 1}, {"quorum": 2, "separation": False}]
    for name, said in zip(("quick", "own"), less, strict=True):
        change = named(team, ann, name, **said)
        assert isinstance(change, PolicyChange)
        assert not Policy.objects.filter(team=team, name=name).exists()
    change = named(team, ann, "theirs", groups=[others], quorum=2)
    assert isinstance(change, PolicyChange)
    assert (change.base.name, change.reasons) == ("refunds", ["Other people, or fewer, have to approve."])
    made = changes.confirm(change, by=mira)
    assert (made.name, made.version, made.reviewer_ids) == ("theirs", 1, [others.pk])


def test_the_built_in_default_is_a_measure_once_gates_were_opened_and_one_that_people_wrote_at_once() -> None:
    team = make_team()
    Policy.objects.named("", team=team)
    assert isinstance(saved(team, writer("Ann"), quorum=1, separation=False), Policy)
    make_policy(team := make_team(), name="default", quorum=2)
    assert isinstance(saved(team, writer("Ann"), quorum=1), PolicyChange)
    team = make_team()
    default = Policy.objects.named("", team=team)
    make_gate(policy=default)
    change = named(team, writer("Ann"), "payments", separation=False)
    assert isinstance(change, PolicyChange)
    assert change.base == default
    assert isinstance(named(team, writer("Ann"), "large", quorum=2), Policy)


def test_who_may_not_write_policies_confirms_none_and_a_refused_one_cannot_be_confirmed(team: Group) -> None:
    change = saved(team, writer("Ann"), quorum=1)
    assert isinstance(change, PolicyChange)
    with pytest.raises(MayNotConfirm):
        changes.confirm(change, by=make_user("Bob", team))
    with pytest.raises(MayNotConfirm):
        changes.refuse(change, by=make_user("Bob", team))
    assert in_force(team).version == 1

    change, mira = saved(team, writer("Ann"), quorum=1), writer("Mira")
    assert isinstance(change, PolicyChange)
    changes.refuse(change, by=mira)
    for again in (changes.confirm, changes.refuse):
        with pytest.raises(ChangeEnded):
            again(change, by=mira)
    assert in_force(team).version == 1


def test_where_people_alone_are_named_nobody_else_decides() -> None:
    """The version was taken for one of these people alone and counted at once, and let the policy's own team decide."""
    team, finance, eve = make_team(), make_team("Finance"), make_user("Eve")
    make_policy(team, groups=(finance,), people=(eve,))
    draft = Policy(team=team, name="refunds")
    made = changes.save(draft, groups=[], people=[eve], by=writer("Ann"))
    assert isinstance(made, Policy)
    stored = Policy.objects.get(pk=made.pk)
    assert changes.terms_of(stored) == changes.terms(draft, [], [eve])
    gate = make_gate(policy=stored)
    with pytest.raises(NotAllowed, match=r"^Only Eve can decide this\.$"):
        decide(gate, make_user("Bob", team))
    assert decide(gate, eve)


def test_one_whose_teams_or_people_are_gone_cannot_be_confirmed(team: Group) -> None:
    """The teams that were left decided, or where there was none the policy's own, which nobody had proposed."""
    finance, eve, mira = make_team("Finance"), make_user("Eve"), writer("Mira")
    draft = Policy(team=team, name="refunds", quorum=2)
    for groups, people, gone in (([finance], [], finance), ([], [eve], eve)):
        change = changes.save(draft, groups=groups, people=people, by=writer("Ann"))
        assert isinstance(change, PolicyChange)
        gone.delete()
        with pytest.raises(NamesGone):
            changes.confirm(change, by=mira)
        changes.refuse(change, by=mira)
    assert in_force(team).version == 1


def test_one_that_another_version_overtook_is_outdated(team: Group) -> None:
    change = saved(team, writer("Ann"), quorum=1)
    assert isinstance(change, PolicyChange)
    saved(team, writer("Bob"), quorum=4)
    with pytest.raises(ChangeEnded):
        changes.confirm(change, by=writer("Mira"))
    change.refresh_from_db()
    assert (change.status, in_force(team).quorum) == ("outdated", 4)


def test_a_setting_that_came_with_a_later_release_stays_as_it_is(team: Group) -> None:
    """A change that waited over an upgrade put new settings back to their defaults, which nobody was shown."""
    Policy.objects.filter(team=team).update(bulk_risk="none", undo_window=HOUR)
    change = saved(team, writer("Ann"), quorum=1, bulk_risk="none", undo_window=HOUR)
    assert isinstance(change, PolicyChange)
    known = {name: value for name, value in decode_canonical(change.settings.encode()).items() if name != "bulk_risk"}
    PolicyChange.objects.filter(pk=change.pk).update(settings=encode_canonical(known).decode())
    made = changes.confirm(PolicyChange.objects.get(pk=change.pk), by=writer("Mira"))
    assert (made.quorum, made.bulk_risk, made.undo_window) == (1, "none", HOUR)


def test_of_two_who_confirm_at_once_one_writes_it(team: Group) -> None:
    change = saved(team, writer("Ann"), quorum=1)
    assert isinstance(change, PolicyChange)

    people, alike = [writer(f"Mira {each}") for each in range(4)], PolicyChange.objects.filter(pk=change.pk)
    found = race([partial(changes.confirm, alike.get(), by=each) for each in people])
    assert sorted(isinstance(each, ChangeEnded) for each in found) == [False, True, True, True], found
    assert in_force(team).version == 2


AUTO = {"name": "small", "when": "amount < 50", "require": {"auto": True}}


@pytest.fixture
def old_team() -> Group:
    team = make_team()
    make_gate(policy=make_policy(team))
    return team


def saved_tool(tool: Tool, by: User, **said: Any) -> list[str]:
    names = ("team", "name", *tool_changes.SAME)
    return tool_changes.save(Tool(**{name: getattr(tool, name) for name in names} | said), by=by)


def tool_in_force(tool: Tool) -> Tool | None:
    return Tool.objects.registered([tool.name], team=tool.team).get(tool.name)


@pytest.mark.parametrize("said", [{"risk": "low"}, {"pinned": []}, {"schema": {"type": "object"}}, {"used": False}])
def test_a_milder_version_waits_until_somebody_else_saves_the_same(old_team: Group, said: dict[str, Any]) -> None:
    tool = make_tool(old_team, risk="high", irreversible=True, undo="", pinned=["/amount"])
    first, second = ann(old_team), bob(old_team)
    assert saved_tool(tool, first, **said)
    assert saved_tool(tool, first, **said), "the same person twice is one person"
    assert tool_in_force(tool) == tool
    assert saved_tool(tool, second, **said) == []
    now = tool_in_force(tool)
    assert (now is None) if "used" in said else now is not None and now.version == tool.version + 3


def test_a_stricter_version_counts_at_once_and_a_new_tool_waits_where_a_rule_could_approve_it(old_team: Group) -> None:
    tool = make_tool(old_team, risk="low")
    assert saved_tool(tool, ann(old_team), risk="high") == []
    now = tool_in_force(tool)
    assert now is not None
    assert now.risk == "high"

    new = Tool(team=old_team, name="bank.send", title="Send", schema={"type": "object"}, risk="high")
    assert saved_tool(new, ann(old_team)) == []
    make_policy(old_team, name="small", rules=[AUTO])
    other = Tool(team=old_team, name="bank.recall", title="Recall", schema={"type": "object"}, risk="high")
    with slipped_in(old_team, name="small"):  # nor does a version that nobody vouches for hide the rule
        assert saved_tool(other, ann(old_team)) == ["A rule of small could approve it by itself."]
    assert tool_in_force(other) is None


@pytest.mark.parametrize("mark", [{"format": "password"}, {"items": {"$ref": "#/$defs/key"}}], ids=str)
def test_a_new_tool_that_hides_what_reviewers_saw_waits(old_team: Group, mark: dict[str, Any]) -> None:
    """One person registered it, and whoever decided saw dots where the account had been."""
    schema = {"type": "object", "properties": {"iban": mark}, "$defs": {"key": {"writeOnly": True}}}
    new = Tool(team=old_team, name="bank.wire", title="Wire", schema=schema, risk="high")
    why = "Reviewers would no longer see the arguments that it marks as secret."
    assert saved_tool(new, ann(old_team)) == [why]
    assert tool_in_force(new) is None
    assert saved_tool(new, bob(old_team)) == []
    assert tool_in_force(new) is not None
    unused = Tool(team=old_team, name="bank.recall", title="Recall", schema=schema, risk="high", used=False)
    assert saved_tool(unused, ann(old_team)) == []
    assert saved_tool(unused, ann(old_team), used=True) == [why]


@pytest.fixture
def policy() -> Policy:
    """Two approvals, asked by agents before."""
    policy = make_policy(quorum=2)
    ann(policy.team)
    bob(policy.team)
    make_gate(policy=policy)
    return policy


def change_page(policy: Policy) -> str:
    return reverse("admin:approvals_policy_change", args=[policy.pk])


def test_a_version_that_was_slipped_in_is_no_measure(policy: Policy) -> None:
    with slipped_in(policy.team, separation=False):
        change = saved(policy.team, writer("Ann"), quorum=1, separation=False)
        assert isinstance(change, PolicyChange)
        assert change.base == policy
        assert change.reasons == [
            "Requester cannot approve: yes, would be no.", "Other people, or fewer, have to approve.",
        ]  # fmt: skip
        as_it_was = saved(policy.team, writer("Ann"), quorum=2)
        assert isinstance(as_it_was, Policy)
        assert Policy.objects.named("refunds", team=policy.team) == as_it_was


def test_what_an_altered_version_asked_cannot_be_told_so_a_second_person_confirms_the_next(policy: Policy) -> None:
    """The application's role may write the columns of a version: the milder row was then the measure."""
    mira = writer("Mira")
    with altered(policy, quorum=1, separation=False):
        for settings in ({"quorum": 1, "separation": False}, {"quorum": 3}):
            change = saved(policy.team, writer("Ann"), **settings)
            assert isinstance(change, PolicyChange)
            assert change.reasons == ["Version 1 was altered in the database, so nobody can tell what it asked."]
        assert changes.confirm(PolicyChange.objects.filter(base=policy).latest("pk"), by=mira).version == 2


def test_a_name_of_which_nobody_vouches_for_any_version_is_compared_as_a_new_one(policy: Policy) -> None:
    with slipped_in(policy.team, name="quick", version=1):
        change = named(policy.team, writer("Ann"), "quick", quorum=1)
        assert isinstance(change, PolicyChange)
        assert change.base == policy
        assert isinstance(named(policy.team, writer("Ann"), "quick", quorum=2), Policy)


def test_its_page_leads_to_the_form_of_the_newest_that_is_vouched_for_and_says_how_it_differs(policy: Policy) -> None:
    """The form was filled with the milder values, without a word; one press of Save put them in force."""
    browser = confirmed(make_user("Root", superuser=True))
    with slipped_in(policy.team, separation=False) as forged:
        page = browser.get(change_page(forged), follow=True)
        assert page.redirect_chain == [(change_page(policy), 302)]
        text = html.unescape(page.content.decode())
        assert "Nobody vouches for version 2" in text
        assert "Version 1 is vouched for, so the next one starts from that." in text
        assert "Requester cannot approve: yes, would be no." in text
        assert f"It would ask: One of {policy.team.name}." in text
        assert page.context["adminform"].form.initial["quorum"] == 2
        refused = browser.post(change_page(forged), POLICY)
        assert "Nothing was saved." in refused.content.decode()
        assert browser.post(change_page(policy), POLICY | {"quorum": 2}).status_code == 302
        now = Policy.objects.named("refunds", team=policy.team)
        assert (now.version, now.quorum, now.separation) == (3, 2, True)
        assert "Nobody vouches" not in browser.get(change_page(now)).content.decode()
