"""A version that only the table knows was the measure of the next: one person saved it, and it counted with a proof."""

from __future__ import annotations

import html
from pathlib import Path

import pytest
from django.contrib.auth.models import Group
from django.urls import reverse

from approvals.models import Policy, PolicyChange, Tool
from approvals.policy_changes import changes, tool_changes
from tests.factories import ann, bob, make_gate, make_policy, make_team, make_user
from tests.harness.altered_rows import altered
from tests.harness.signed_in_clients import confirmed
from tests.harness.vouched_policies import slipped_in

from .test_changes import named, saved, writer
from .test_policies_command import run, written

FORM = {
    "quorum": 2, "denials": 1, "on_expiry": "expire", "separation": "on", "reason_required": "on", "bulk_risk": "low",
    "auto_sample": 10, "leaves": "title", "remind_share": 25, "step_up_method": "any", "tokens_decide": "on",
    "hourly": 120, "pause": "10 min",
}  # fmt: skip


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


def test_nor_is_one_of_another_name(policy: Policy) -> None:
    with slipped_in(policy.team, name="weak", version=1, separation=False):
        assert isinstance(named(policy.team, writer("Ann"), "quick", separation=False), PolicyChange)


def test_a_name_of_which_nobody_vouches_for_any_version_is_compared_as_a_new_one(policy: Policy) -> None:
    with slipped_in(policy.team, name="quick", version=1):
        change = named(policy.team, writer("Ann"), "quick", quorum=1)
        assert isinstance(change, PolicyChange)
        assert change.base == policy
        assert isinstance(named(policy.team, writer("Ann"), "quick", quorum=2), Policy)


def test_nor_does_it_hide_a_rule_by_which_a_new_tool_could_be_approved() -> None:
    small = {"name": "small", "when": "amount < 50", "require": {"auto": True}}
    policy = make_policy(rules=[small])
    make_gate(policy=policy)
    tool = Tool(team=policy.team, name="bank.wire", title="Wire", schema={"type": "object"}, risk="high")
    with slipped_in(policy.team):
        assert tool_changes.save(tool, by=ann(policy.team)) == ["A rule of refunds could approve it by itself."]


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
        refused = browser.post(change_page(forged), {**FORM, "quorum": 1})
        assert "Nothing was saved." in refused.content.decode()
        assert browser.post(change_page(policy), FORM).status_code == 302
        now = Policy.objects.named("refunds", team=policy.team)
        assert (now.version, now.quorum, now.separation) == (3, 2, True)
        assert "Nobody vouches" not in browser.get(change_page(now)).content.decode()


def test_an_altered_version_is_marked_in_its_form(policy: Policy) -> None:
    browser = confirmed(make_user("Root", superuser=True))
    with altered(policy, quorum=1):
        page = html.unescape(browser.get(change_page(policy)).content.decode())
    assert "Version 1 was altered in the database" in page
    assert "Nobody vouches" not in page


def test_a_file_is_compared_with_what_is_vouched_for(policy: Policy, tmp_path: Path) -> None:
    """It said “unchanged” of a file that had the milder values, and printed them as the policies in force."""
    team = Group.objects.get(pk=policy.team_id)
    exported = run("export", "--team", team.name)
    with slipped_in(team, separation=False):
        assert run("export", "--team", team.name) == exported
        told = run("check", written(tmp_path, exported))
        assert f"{team.name}: refunds: unchanged" not in told
        assert "Nobody vouches for version 2" in told
        assert "written as version 3" in run("apply", str(tmp_path / "policies.toml"), "--by", writer("Ann").username)
    assert run("check", str(tmp_path / "policies.toml")) == f"{team.name}: refunds: unchanged\n"


def test_a_team_without_gates_or_policies_that_are_vouched_for_is_set_up_alone() -> None:
    team = make_team()
    with slipped_in(team, version=1):
        assert isinstance(saved(team, writer("Ann"), quorum=1), Policy)
