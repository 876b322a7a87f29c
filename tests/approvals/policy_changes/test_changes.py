"""A milder version counts once a second person confirms it; a stricter one at once."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.db import IntegrityError, connection

from approvals.errors import NotAllowed
from approvals.models import Policy, PolicyChange
from approvals.policy_changes import changes
from approvals.policy_changes.changes import ChangeEnded, MayNotConfirm, NamesGone, SamePerson
from approvals.policy_changes.simulation import simulate
from checkpoints.models import Event
from checkpoints.values.canonical_json import decode_canonical, encode_canonical
from tests.factories import decide, make_gate, make_policy, make_team, make_user
from tests.harness.altered_rows import owner

HOUR = timedelta(hours=1)
WRITES = ("approvals.change_policy", "approvals.add_policy")


def writer(name: str) -> User:
    """A person of the staff who may write policies."""
    user = make_user(name, may=WRITES)
    User.objects.filter(pk=user.pk).update(is_staff=True)
    return User.objects.get(pk=user.pk)


@pytest.fixture
def team() -> Group:
    team = make_team()
    make_policy(team, quorum=2)
    return team


def saved(team: Group, by: User, **settings: Any) -> Policy | PolicyChange:
    """Write the team's policy with these settings."""
    return changes.save(Policy(team=team, name="refunds", **{"quorum": 2, **settings}), groups=[], people=[], by=by)


def in_force(team: Group) -> Policy:
    return Policy.objects.filter(team=team, name="refunds").latest("version")


def test_a_stricter_version_counts_at_once(team: Group) -> None:
    made = saved(team, writer("Ann"), quorum=3)
    assert isinstance(made, Policy)
    assert (in_force(team).version, in_force(team).quorum) == (2, 3)


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


def test_the_first_policy_beside_a_default_that_people_wrote_is_compared_with_it() -> None:
    """Gates that ask for a name which is not there yet are the default's: one person alone let them pass with fewer."""
    team, ann, mira = make_team(), writer("Ann"), writer("Mira")
    default = make_policy(team, name="default", quorum=2)
    stricter = saved(team, ann, quorum=2, step_up=True)
    assert isinstance(stricter, Policy)
    with owner() as made:
        made.execute("DELETE FROM approvals_policy_groups WHERE policy_id = %s", [stricter.pk])
        made.execute("DELETE FROM approvals_policy WHERE id = %s", [stricter.pk])
        made.execute("DELETE FROM checkpoints_event WHERE subject = %s", [f"policy:{stricter.pk}"])
    change, other = saved(team, ann, quorum=1), saved(team, ann, quorum=1, denials=2)
    assert isinstance(change, PolicyChange)
    assert isinstance(other, PolicyChange)
    assert change.base == default
    assert changes.confirm(change, by=mira) == in_force(team)
    with pytest.raises(ChangeEnded):
        changes.confirm(other, by=mira)


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


def test_a_new_name_as_strict_as_one_of_the_team_counts_at_once(team: Group) -> None:
    make_policy(team, name="large", quorum=3)
    make_gate(policy=Policy.objects.get(team=team, name="large"))
    assert isinstance(named(team, writer("Ann"), "another", quorum=2), Policy)


def test_before_the_first_gate_a_teams_first_policies_count_at_once(team: Group) -> None:
    assert isinstance(named(team, writer("Ann"), "quick", quorum=1), Policy)


def test_what_a_new_name_would_have_asked_is_tried_on_the_gates_of_all_names(team: Group) -> None:
    for name in ("refunds", "large"):
        policy = Policy.objects.filter(team=team, name=name).first() or make_policy(team, name=name, quorum=3)
        make_gate(policy=policy)
    found = simulate(Policy(team=team, name="quick"), groups=[], people=[])
    assert "2 would have needed less than was asked." in found.sentences
    known = simulate(Policy(team=team, name="large"), groups=[], people=[])
    assert len(known.gates) == 1


def test_beside_the_built_in_default_the_first_policy_counts_at_once() -> None:
    team = make_team()
    Policy.objects.named("", team=team)
    assert isinstance(saved(team, writer("Ann"), quorum=1, denials=2), Policy)


def test_once_gates_were_opened_under_the_built_in_default_it_is_a_measure() -> None:
    """One person alone wrote a name without separation, by which the team's next gates opened and were decided."""
    team = make_team()
    default = Policy.objects.named("", team=team)
    make_gate(policy=default)
    change = named(team, writer("Ann"), "payments", separation=False)
    assert isinstance(change, PolicyChange)
    assert change.base == default
    assert isinstance(named(team, writer("Ann"), "large", quorum=2), Policy)
    assert isinstance(named(team, writer("Ann"), "own", separation=False), PolicyChange)


def test_an_escalation_at_the_deadline_comes_no_sooner_by_one_person_alone(team: Group) -> None:
    level = {"team": make_team("Others").pk, "after": None, "extend": 86400}
    waiting = saved(team, writer("Ann"), deadline=48 * HOUR, escalation=[level])
    assert isinstance(waiting, PolicyChange)
    changes.confirm(waiting, by=writer("Mira"))
    sooner = saved(team, writer("Ann"), deadline=timedelta(minutes=1), escalation=[level])
    assert isinstance(sooner, PolicyChange)
    assert sooner.reasons == ["Deadline: 2 days, would be 1 min."]


def test_who_may_not_write_policies_confirms_none(team: Group) -> None:
    change = saved(team, writer("Ann"), quorum=1)
    assert isinstance(change, PolicyChange)
    with pytest.raises(MayNotConfirm):
        changes.confirm(change, by=make_user("Bob", team))
    with pytest.raises(MayNotConfirm):
        changes.refuse(change, by=make_user("Bob", team))
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
    with pytest.raises(NotAllowed, match="By this policy others decide this one: Eve"):
        decide(gate, make_user("Bob", team))
    assert decide(gate, eve)


def test_a_refused_one_cannot_be_confirmed(team: Group) -> None:
    change, mira = saved(team, writer("Ann"), quorum=1), writer("Mira")
    assert isinstance(change, PolicyChange)
    changes.refuse(change, by=mira)
    for again in (changes.confirm, changes.refuse):
        with pytest.raises(ChangeEnded):
            again(change, by=mira)
    assert in_force(team).version == 1


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


def test_every_setting_survives_the_wait(team: Group) -> None:
    import datetime as dt

    said = {
        "quorum": 1, "separation": False, "deadline": dt.timedelta(hours=3), "on_expiry": "approve", "pause": None,
        "hourly": None, "whole_state": True,
    }  # fmt: skip
    change = saved(team, writer("Ann"), **said)
    assert isinstance(change, PolicyChange)
    made = Policy.objects.get(pk=changes.confirm(change, by=writer("Mira")).pk)
    assert {name: getattr(made, name) for name in said} == said


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

    def confirmed(by: User) -> str:
        try:
            changes.confirm(PolicyChange.objects.get(pk=change.pk), by=by)
        except ChangeEnded:
            return "ended"
        finally:
            connection.close()
        return "written"

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(confirmed, [writer(f"Mira {each}") for each in range(4)]))
    assert sorted(found) == ["ended", "ended", "ended", "written"]
    assert in_force(team).version == 2


def test_the_database_itself_holds_that_there_are_two(team: Group) -> None:
    ann = writer("Ann")
    change = saved(team, ann, quorum=1)
    assert isinstance(change, PolicyChange)
    with pytest.raises(IntegrityError, match="policy_change_has_two_people"):
        change.end(PolicyChange.Status.CONFIRMED, by=ann)
