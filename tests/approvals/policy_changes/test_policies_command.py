"""`manage.py policies`: a file is checked as the administration checks, applied as a whole, and written back."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from django.contrib.auth.models import Group, User
from django.core.management import CommandError, call_command

from approvals.cards.action import Action
from approvals.models import Calendar, Policy, PolicyChange, versions
from approvals.models.policy import HOURLY, PAUSE
from approvals.policy_changes import changes
from tests.approvals.policy_changes.test_changes import writer
from tests.approvals.tools.registered_tools import make_tool
from tests.factories import make_card, make_gate, make_policy, make_run, make_team, make_user
from tests.harness.session import ROOT
from tests.harness.vouched_policies import slipped_in

FILE = """
[[policy]]
team = "{team}"
name = "refunds"
quorum = {quorum}
deadline = "4 h"

[[policy.rule]]
name = "small"
when = 'amount < 50 && customer.tier == "gold"'
approvals = {quorum}
"""


@pytest.fixture
def team() -> Group:
    team = make_team("Support")
    for _ in range(3):
        make_user("Somebody", team)
    return team


def run(verb: str, *arguments: str) -> str:
    out = io.StringIO()
    call_command("policies", verb, *arguments, stdout=out)
    return out.getvalue()


def written(folder: Path, text: str) -> str:
    (folder / "policies.toml").write_text(text, encoding="utf-8")
    return str(folder / "policies.toml")


def test_checking_writes_nothing_and_applying_writes_what_changed(team: Group, tmp_path: Path) -> None:
    ann = writer("Ann")
    file = written(tmp_path, FILE.format(team=team.name, quorum=2))
    assert run("check", file) == f"{team.name}: refunds: new\n"
    assert not Policy.objects.filter(team=team).exists()
    assert "written as version 1" in run("apply", file, "--by", ann.username)
    assert run("apply", file, "--by", ann.username) == f"{team.name}: refunds: unchanged\n"
    policy = Policy.objects.get(team=team)
    assert (policy.quorum, policy.deadline and policy.deadline.seconds, policy.tokens_decide) == (2, 4 * 3600, False)


def test_the_pages_example_is_a_file_that_can_be_checked(team: Group, tmp_path: Path) -> None:
    [example] = re.findall(r"```toml\n(.*?)```", (ROOT / "docs" / "policy-files.md").read_text(), re.DOTALL)
    names = {"Support": team.name, "Finance": make_team("Finance").name}
    file = written(tmp_path, re.sub("Support|Finance", lambda found: names[found[0]], example))
    assert f"{team.name}: refunds: new\n" in run("check", file)


def test_a_file_that_is_applied_again_proposes_nothing_a_second_time(team: Group, tmp_path: Path) -> None:
    """Each run of it left one more change to confirm, all of them the same."""
    ann, mira = writer("Ann"), writer("Mira")
    run("apply", written(tmp_path, FILE.format(team=team.name, quorum=2)), "--by", ann.username)
    milder = written(tmp_path, FILE.format(team=team.name, quorum=1))
    for _ in range(2):
        told = run("apply", milder, "--by", ann.username)
        assert f"as change {PolicyChange.objects.get(team=team).pk} for somebody other than {ann.username}" in told
    run("apply", milder, "--by", mira.username)
    assert PolicyChange.objects.filter(team=team).count() == 2  # either may confirm the other's


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[[policy]]\nteam = 'Nowhere'\nname = 'a'", "there is no “Nowhere”"),
        ("[[policy]]\nteam = '{team}'\nname = 'a'\ndeadline = '1 s'", "deadline: That is less than a minute"),
        ("[[policy]]\nteam = '{team}'\nname = 'a b'", "name: Enter a valid"),
        ("[[policy]]\nteam = '{team}'\nname = 'a'\n[[policy.rule]]\nname = 'r'\nwhen = 'amount <'", "rules:"),
        ("[[policy]]\nteam = '{team}'\nname = 'a'\n[[policy]]\nteam = '{team}'\nname = 'a'", "is there twice"),
        ("[[policy]\n", "This cannot be read as TOML"),
    ],
)
def test_a_wrong_file_says_where_and_writes_nothing(team: Group, tmp_path: Path, text: str, told: str) -> None:
    good = f"[[policy]]\nteam = '{team.name}'\nname = 'good'\n"
    file = written(tmp_path, good + text.replace("{team}", team.name))
    with pytest.raises(CommandError, match=r"\S") as refused:
        run("apply", file, "--by", writer("Ann").username)
    assert told in str(refused.value)
    assert not Policy.objects.filter(team=team).exists()


def test_only_somebody_who_may_write_policies_applies_a_file(team: Group, tmp_path: Path) -> None:
    file = written(tmp_path, FILE.format(team=team.name, quorum=2))
    for name in ("nobody", make_user("Bob", team).username):
        with pytest.raises(CommandError, match="may not write policies"):
            run("apply", file, "--by", name)
    with pytest.raises(CommandError, match="No such file"):
        run("check", str(tmp_path / "none.toml"))


def test_what_is_exported_changes_nothing_when_it_is_applied(team: Group, tmp_path: Path) -> None:
    ann, legal = writer("Ann"), make_team("Legal")
    make_user("Lee", legal)
    earlier = make_team("Accounts")
    text = FILE.format(team=team.name, quorum=2)
    text += f"""
[[policy]]
team = "{team.name}"
name = "several"
groups = ["{earlier.name}", "{team.name}"]

[[policy]]
team = "{team.name}"
name = "staged"
stages = ["1 of {team.name} and 1 of {legal.name}", "1 of {legal.name} or @{ann.username}"]
hourly = "none"
bulk_risk = "none"
separation = false
escalation = ["{legal.name} after 2 h", "{legal.name} at the deadline, 4 h more"]
calendar = "office"
"""
    Calendar.objects.create(team=team, name="office")
    run("apply", written(tmp_path, text), "--by", ann.username)
    assert Policy.objects.get(team=team, name="staged").bulk_risk == "none"  # it was taken for an empty field
    exported = run("export", "--team", team.name)
    file = written(tmp_path, exported)
    names = ("refunds", "several", "staged")
    assert run("check", file) == "".join(f"{team.name}: {name}: unchanged\n" for name in names)
    with pytest.raises(CommandError, match="There is no team"):
        run("export", "--team", "Nowhere")


LARGE = """
[[policy]]
team = "{team}"
name = "refunds"

[[policy.rule]]
name = "large"
when = '{when}'
approvals = 2
"""
LIMITS = "[[policy]]\nteam = '{team}'\nname = 'refunds'\nhourly = {hourly}\npause = {pause}\n"


def test_to_remove_a_limit_is_milder_and_what_a_file_leaves_out_has_its_default(team: Group, tmp_path: Path) -> None:
    """A stored limit stayed as it was when a file said that there is none."""
    ann = writer("Ann")
    run("apply", written(tmp_path, LIMITS.format(team=team.name, hourly=5, pause='"1 h"')), "--by", ann.username)
    told = run(
        "apply", written(tmp_path, LIMITS.format(team=team.name, hourly='"none"', pause='"none"')), "--by", ann.username
    )
    assert "a second person has to confirm: Gates per hour: 5, would be none." in told
    assert "a second person has to confirm: Pause before a third attempt: 1 h, would be none." in told
    change = PolicyChange.objects.get(team=team)
    assert (change.values["hourly"], change.values["pause"]) == (None, None)
    confirmed = changes.confirm(change, by=writer("Mira"))
    assert (confirmed.hourly, confirmed.pause) == (None, None)
    run("apply", written(tmp_path, f"[[policy]]\nteam = '{team.name}'\nname = 'refunds'\n"), "--by", ann.username)
    newest = versions.newest(confirmed)
    assert (newest.hourly, newest.pause) == (HOURLY, PAUSE)


def test_a_rule_that_some_tools_leave_unclear_is_told_of_with_the_way_to_name_one(team: Group, tmp_path: Path) -> None:
    """`amount > 1000` asked two people of each refund with a reply, since the reply has no amount. Nothing said so."""
    make_tool(team, name="pay.refund", schema={"type": "object", "properties": {"amount": {"type": "number"}}})
    make_tool(team, name="mail.send", schema={"type": "object", "properties": {"text": {"type": "string"}}})
    told = run("check", written(tmp_path, LARGE.format(team=team.name, when="amount > 1000")))
    assert "The rule “large” cannot be evaluated for actions like these: mail.send (there is no “amount”)." in told
    assert 'name it: tool == "…" && (amount > 1000).' in told
    named = LARGE.format(team=team.name, when='tool == "pay.refund" && (amount > 1000)')
    assert run("check", written(tmp_path, named)) == f"{team.name}: refunds: new\n"


def test_a_rule_that_was_unclear_for_some_of_the_last_gates_is_told_of(team: Group, tmp_path: Path) -> None:
    policy = make_policy(team)
    pay, mail = (Action(id=tool[0], tool=tool, arguments=said) for tool, said in (
        ("pay.refund", {"amount": "5.00"}), ("mail.send", {"text": "Hello"}),
    ))  # fmt: skip
    make_gate(run=make_run(team=team), policy=policy, card=make_card(actions=[pay, mail]))
    told = run("check", written(tmp_path, LARGE.format(team=team.name, when="amount > 1000")))
    assert "cannot be evaluated for actions like these: mail.send (there is no “amount”)." in told
    assert "1 of the last 1 gates would have asked two people." in told
    named = LARGE.format(team=team.name, when='tool == "pay.refund" && amount > 1000')
    told = run("check", written(tmp_path, named))
    assert "cannot be evaluated" not in told
    assert "1 of the last 1 gates would have asked one person." in told


def test_somebody_who_is_switched_off_is_exported_by_name_and_named_by_no_file(team: Group, tmp_path: Path) -> None:
    """The export of all policies ended with a KeyError, and stages named the number of the account."""
    gone, legal = make_user("Mira"), make_team("Legal")
    make_policy(team, name="named", groups=(team,), people=(gone,))
    roles = [{"quorum": 1, "groups": [legal.pk], "people": []}, {"quorum": 1, "groups": [team.pk], "people": [gone.pk]}]
    make_policy(team, name="staged", stages=[{"roles": roles}])
    User.objects.filter(pk=gone.pk).update(is_active=False)
    exported = run("export", "--team", team.name)
    assert f'"{gone.username}"' in exported
    assert f"1 of {legal.name} and 1 of {team.name} or @{gone.username}" in exported
    with pytest.raises(CommandError, match=f"“{gone.username}”"):
        run("check", written(tmp_path, exported))


def test_a_file_is_compared_with_what_is_vouched_for(team: Group, tmp_path: Path) -> None:
    """It said “unchanged” of a file that had the milder values, and printed them as the policies in force."""
    make_policy(team, quorum=2)
    exported = run("export", "--team", team.name)
    with slipped_in(team, separation=False):
        assert run("export", "--team", team.name) == exported
        told = run("check", written(tmp_path, exported))
        assert f"{team.name}: refunds: unchanged" not in told
        assert "Nobody vouches for version 2" in told
        assert "written as version 3" in run("apply", str(tmp_path / "policies.toml"), "--by", writer("Ann").username)
    assert run("check", str(tmp_path / "policies.toml")) == f"{team.name}: refunds: unchanged\n"
