"""A gate that was withdrawn and is asked again: the one leads to the other, for whoever could decide the first.

The bug: a reviewer's link ended at "Withdrawn", and where the policy had changed meanwhile the gate that asked in its
place was not there for them.
"""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from agents.moves import rewind
from approvals.errors import NotAllowed
from approvals.live.access import WatchedPage, accesses
from approvals.models import Gate
from checkpoints.models import Event, Run
from checkpoints.values import canonical_json
from tests.factories import ann, decide, eve, make_policy, make_team, mira
from tests.factories.driven_runs import advance_to_rest, make_run, open_gate
from tests.factories.people import REVIEWER
from tests.harness.signed_in_clients import form_of, post, session_of, signed_in


def asked_again(run: Run, by: User) -> tuple[Gate, Gate]:
    """The gate of the run, withdrawn by a rewind, and the one that asks in its place."""
    first = open_gate(run)
    rewind.rewind(run, to=1, by=by)
    second = open_gate(advance_to_rest(run))
    assert (Gate.objects.get(pk=first.pk).status, first.pk != second.pk) == ("withdrawn", True)
    return first, second


def sees(person: User, gate: Gate) -> set[bool]:
    """What each place that decides it says: the page, the list, the socket, the API."""
    client = signed_in(person)
    [access] = accesses([WatchedPage(session_of(person), frozenset({f"gate:{gate.pk}"}))])
    assert access is not None
    return {
        client.get(f"/gates/{gate.pk}/").status_code == 200,
        Gate.objects.visible_to(person).filter(pk=gate.pk).exists(),
        f"gate.{gate.pk}" in access.watched,
        client.get(f"/api/gates/{gate.pk}").status_code == 200,
    }


def test_a_withdrawn_gate_leads_to_the_one_that_asks_in_its_place() -> None:
    run = advance_to_rest(make_run("payer"))
    by = ann(run.team)
    first, second = asked_again(run, by)
    page = signed_in(by).get(f"/gates/{first.pk}/").content.decode()
    assert f'<a href="/gates/{second.pk}/">Asked again in gate {second.pk}: open it</a>' in page
    assert f'<a href="/gates/{first.pk}/">' in signed_in(by).get(f"/gates/{second.pk}/").content.decode()
    told = signed_in(by).get(f"/api/gates/{first.pk}").json()
    assert (told["replaced_by"], told["replaces"]) == (second.pk, [])
    assert signed_in(by).get(f"/api/gates/{second.pk}").json()["replaces"] == [first.pk]
    replaced = Event.objects.get(subject=first.subject, kind="gate.replaced")
    assert canonical_json.decode_canonical(bytes(replaced.data))["gate"] == second.pk
    twin = open_gate(advance_to_rest(make_run("payer", team=run.team)))
    _, third = asked_again(run, by)
    assert [Gate.objects.get(pk=each.pk).replacement() for each in (first, second)] == [third, third]
    assert (set(third.replaces.all()), set(twin.replaces.all())) == ({first, second}, set())


def test_whoever_could_decide_the_first_sees_the_second_and_decides_by_its_own_policy() -> None:
    team, finance, legal = make_team(), make_team("Finance", may=REVIEWER), make_team("Legal", may=REVIEWER)
    make_policy(team, name="payments", groups=(finance,))
    reviewer, other, outsider, member = mira(finance), mira(legal), eve(), ann(team)
    run = advance_to_rest(make_run("payer", team=team))
    make_policy(team, name="payments", version=2, groups=(legal,))
    first, second = asked_again(run, member)

    assert (sees(reviewer, first), sees(reviewer, second)) == ({True}, {True})
    assert (sees(other, first), sees(other, second)) == ({False}, {True})
    assert (sees(outsider, first), sees(outsider, second)) == ({False}, {False})
    assert (sees(member, first), sees(member, second)) == ({True}, {True})

    with pytest.raises(NotAllowed):
        decide(second, reviewer)
    assert post(reviewer, second, form_of(second)).status_code == 403
    assert "Legal" in signed_in(reviewer).get(f"/gates/{second.pk}/").content.decode()
    assert f"/gates/{first.pk}/" not in signed_in(other).get(f"/gates/{second.pk}/").content.decode()
    decide(second, other)

    # What is asked after that is another question, and none of theirs.
    rewind.rewind(advance_to_rest(run), to=1, by=member, confirm=True, feedback="Less.")
    third = open_gate(advance_to_rest(run))
    assert not third.replaces.exists()
    assert (sees(reviewer, third), sees(other, third)) == ({False}, {True})
