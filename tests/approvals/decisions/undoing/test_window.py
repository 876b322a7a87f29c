"""A decision under a policy with an undo window counts at once and takes effect at the end of the window."""

from __future__ import annotations

import datetime as dt
import re
import signal
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from approvals.consequences.errors import RejectionStands
from approvals.decisions.undo_window import settle, take_back
from approvals.errors import GateExpired, NothingToUndo, NoUndo, UndoTooLate
from approvals.gates import closing
from approvals.models import Decision, Gate, Grant, Outcome
from checkpoints import actors, crash_points
from checkpoints.errors import NotVerified
from checkpoints.models import Event, Hold, Run
from tests.factories import ann, bob, change_gate, decide, edit_amount, make_gate, make_team
from tests.harness.altered_rows import altered
from tests.harness.examples import first_alone
from tests.harness.racing_threads import race
from tests.harness.services import run
from tests.harness.signed_in_clients import form_of, signed_in

from .windows import WINDOW, end_window, make_held, now, pass_window


def kinds(gate: Gate) -> list[str]:
    return list(Event.objects.filter(subject=gate.subject).order_by("id").values_list("kind", flat=True))


def decided() -> tuple[Gate, User, Decision]:
    """A gate within its window, whoever approved it, and the approval."""
    gate = make_held(make_team())
    person = ann(gate.team)
    return gate, person, decide(gate, person)


def test_nothing_is_let_run_until_the_window_ends_and_then_the_gate_closes_as_it_was_decided() -> None:
    gate, person, _ = decided()
    held = now(gate)
    assert (held.status, held.settles_as) == ("open", "approved")
    assert held.settles_at is not None
    assert dt.timedelta(0) < held.settles_at - timezone.now() <= WINDOW
    assert not Grant.objects.filter(outcome__gate=gate).exists()
    assert Run.objects.get(pk=gate.run_id).status == "waiting"
    assert Hold.objects.standing().filter(subject=gate.subject).exists()
    assert kinds(gate)[-2:] == ["gate.decided", "gate.settling"]
    assert not settle(held)
    assert now(gate).status == "open"
    assert end_window(gate)
    closed = now(gate)
    assert (closed.status, closed.settles_at, closed.settles_as) == ("decided", None, "")
    outcome = Outcome.objects.get(gate=gate)
    assert (outcome.kind, outcome.by, outcome.grants.count()) == ("approved", f"user:{person.pk}", 2)
    assert [each.user for each in outcome.decisions.all()] == [person]
    assert Run.objects.get(pk=gate.run_id).status == "queued"
    assert not Hold.objects.standing().filter(subject=gate.subject).exists()
    assert kinds(gate)[-1] == "gate.closed"


def test_nobody_undoes_anothers_decision_nor_one_that_closed_its_gate() -> None:
    gate, _, made = decided()
    with pytest.raises(NothingToUndo):
        take_back(now(gate), by=bob(gate.team), decision=made.pk)
    assert Decision.objects.get(pk=made.pk).counts
    refused = Event.objects.get(subject=gate.subject, kind="decision.refused")
    assert b'"kind":"nothing_to_undo"' in bytes(refused.data)
    gate, person, _ = decided()
    end_window(gate)
    with pytest.raises(UndoTooLate, match=r"closed at \d\d:\d\d:\d\d UTC: Approved\. It is too late to undo"):
        take_back(now(gate), by=person)
    gate = make_gate(team=make_team())
    decide(gate, person := ann(gate.team))
    with pytest.raises(NoUndo):
        take_back(now(gate), by=person)


def test_a_rejection_within_the_window_wins_and_has_a_window_of_its_own() -> None:
    gate, *_ = decided()
    second = bob(gate.team)
    pass_window(gate)
    decide(gate, second, "reject")
    held = now(gate)
    assert held.settles_as == "rejected"
    assert held.settles_at is not None
    assert held.settles_at > timezone.now()
    take_back(now(gate), by=second)
    assert kinds(gate)[-2:] == ["gate.undone", "gate.settling"]


def test_nobody_but_who_rejected_approves_or_edits_what_is_rejected() -> None:
    """It was recorded, told as the last approval needed, and the gate closed as rejected."""
    gate = make_held(make_team())
    decide(gate, first := ann(gate.team), "reject")
    for verdict, said in (("approve", {}), ("edit", {"arguments": edit_amount(gate, "80.00")})):
        with pytest.raises(RejectionStands, match="Ann Okafor rejected this"):
            decide(gate, bob(gate.team), verdict, **said)
    decide(gate, first)
    assert now(gate).settles_as == "approved"


def test_one_more_approval_neither_prolongs_nor_needs_the_first_and_one_of_several_is_taken_back() -> None:
    gate, first, _ = decided()
    team = gate.team
    at = now(gate).settles_at
    decide(gate, bob(team))
    assert now(gate).settles_at == at
    take_back(now(gate), by=first)
    assert now(gate).settles_at == at
    end_window(gate)
    assert [each.user.first_name for each in Outcome.objects.get(gate=gate).decisions.all()] == ["Bob"]
    gate, person = make_held(team, quorum=2), ann(team)
    decide(gate, person)
    assert now(gate).settles_at is None
    take_back(now(gate), by=person)
    decide(gate, bob(team))
    assert now(gate).status == "open"
    decide(gate, person)
    assert now(gate).status == "decided"  # the second person is the safety, so there is no window


def test_an_edit_of_an_edit_has_a_window_of_its_own() -> None:
    """It took effect at the end of the first one's window, a moment later, and could hardly be undone."""
    gate = make_held(make_team())
    decide(gate, ann(gate.team), "edit", arguments=edit_amount(gate, "80.00"))
    change_gate(gate, settles_at=timezone.now() + dt.timedelta(seconds=5))
    decide(gate, bob(gate.team), "edit", arguments=edit_amount(gate, "8000.00"))
    at = now(gate).settles_at
    assert at is not None
    assert at - timezone.now() > WINDOW / 2


def test_a_decision_counts_by_the_deadline_and_expires_where_it_is_undone_after_it() -> None:
    team = make_team()
    gate = make_held(team, deadline=dt.timedelta(minutes=5))
    decide(gate, ann(team))
    change_gate(gate, deadline=timezone.now() - dt.timedelta(seconds=1))
    assert gate.pk not in Gate.objects.overdue().values_list("pk", flat=True)
    assert closing.expire(now(gate)) is None
    with pytest.raises(GateExpired):
        decide(gate, bob(team), "reject")
    end_window(gate)
    assert Outcome.objects.get(gate=gate).kind == "approved"
    gate, person = make_held(team, deadline=dt.timedelta(minutes=5)), ann(team)
    decide(gate, person)
    change_gate(gate, deadline=timezone.now() - dt.timedelta(seconds=1))
    take_back(now(gate), by=person)
    assert closing.expire(now(gate)) is not None
    assert Outcome.objects.get(gate=gate).kind == "expired"


def test_a_run_that_is_cancelled_within_the_window_withdraws_the_gate() -> None:
    gate, person, _ = decided()
    assert closing.withdraw(now(gate), by=actors.SYSTEM, reason="The run was cancelled.")
    assert not settle(now(gate))
    with pytest.raises(UndoTooLate, match="Withdrawn"):
        take_back(now(gate), by=person)


@pytest.mark.parametrize("column", ["settles_at", "settles_as", "vote"])
def test_what_is_altered_within_the_window_is_found_and_nothing_closes(column: str) -> None:
    gate, person, made = decided()
    pass_window(gate)
    row = made if column == "vote" else now(gate)
    earlier = timezone.now() - dt.timedelta(hours=1)
    wrong: dict[str, dict[str, Any]] = {"vote": {"comment": b"Forged."}, "settles_as": {"settles_as": "edited"}}
    with altered(row, **wrong.get(column, {"settles_at": earlier})):
        with pytest.raises(NotVerified):
            settle(now(gate))
        if column != "vote":
            with pytest.raises(NotVerified):
                take_back(now(gate), by=person)
        assert now(gate).status == "open"
    assert settle(now(gate))


def test_an_undo_that_races_the_end_of_the_window_undoes_all_or_is_told_that_it_is_too_late() -> None:
    team = make_team()
    person = ann(team)
    for turn in range(4):
        gate = make_held(team)
        decide(gate, person)
        pass_window(gate)
        calls: list[Callable[[], Any]] = [partial(settle, now(gate)), partial(take_back, now(gate), by=person)]
        results = race(calls if turn % 2 else calls[::-1])
        undone = any(isinstance(result, Decision) for result in results)
        closed = Outcome.objects.filter(gate=gate).exists()
        assert undone != closed
        assert Grant.objects.filter(outcome__gate=gate).count() == (2 if closed else 0)
        assert Run.objects.get(pk=gate.run_id).status == ("queued" if closed else "waiting")
        assert Decision.objects.get(gate=gate).counts == closed
        assert any(isinstance(result, UndoTooLate) for result in results) == closed


def test_of_two_undos_or_two_sweepers_at_once_one_does_it() -> None:
    gate, person, _ = decided()
    results = race([partial(take_back, now(gate), by=person) for _ in range(4)])
    assert sum(isinstance(result, Decision) for result in results) == 1
    assert sum(isinstance(result, NothingToUndo) for result in results) == 3
    assert Event.objects.filter(subject=gate.subject, kind="gate.undone").count() == 1
    gate, *_ = decided()
    pass_window(gate)
    results = race([partial(settle, now(gate)) for _ in range(4)])
    assert sorted(results) == [False, False, False, True]
    assert Event.objects.filter(subject=gate.subject, kind="gate.closed").count() == 1


PROGRAM = """
import sys, django
django.setup()
from django.contrib.auth.models import User
from approvals.decisions.undo_window import settle, take_back
from approvals.models import Gate
gate = Gate.objects.get(pk=int(sys.argv[1]))
settle(gate) if sys.argv[2] == "0" else take_back(gate, by=User.objects.get(pk=int(sys.argv[2])))
"""


@pytest.mark.parametrize("point", first_alone(["after_settled", "after_undone", "before_settled", "before_undone"]))
def test_a_process_killed_there_leaves_the_gate_as_it_was_and_the_next_one_does_it(point: str) -> None:
    gate, person, _ = decided()
    pass_window(gate)
    before = Gate.objects.values().get(pk=gate.pk)
    events = Event.objects.filter(subject=gate.subject).count()
    undoes = "undone" in point
    wish = {"DJANGO_SETTINGS_MODULE": "config.settings", "HOLDPOINT_CRASH": f"{point}:kill"}
    killed = run(sys.executable, "-c", PROGRAM, str(gate.pk), str(person.pk if undoes else 0), env=wish)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert Gate.objects.values().get(pk=gate.pk) == before
    assert Event.objects.filter(subject=gate.subject).count() == events
    assert not Outcome.objects.filter(gate=gate).exists()
    assert Decision.objects.get(gate=gate).counts
    if undoes:
        take_back(now(gate), by=person)
        assert now(gate).settles_at is None
    else:
        assert settle(now(gate))
        assert Outcome.objects.get(gate=gate).kind == "approved"


def test_an_undo_before_the_end_takes_the_vote_out_though_another_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """The votes were counted before the gate's row was locked: the outcome named whoever had taken theirs back."""
    gate, first, _ = decided()
    decide(gate, bob(gate.team))
    pass_window(gate)

    def undo(name: str, step: str, value: Any) -> None:
        if name == "before_settled":
            monkeypatch.setattr(crash_points, "_listeners", [])
            [undone] = race([partial(take_back, now(gate), by=first)])
            assert isinstance(undone, Decision)

    monkeypatch.setattr(crash_points, "_listeners", [undo])
    assert not settle(now(gate))
    assert settle(now(gate))
    assert [each.user.first_name for each in Outcome.objects.get(gate=gate).decisions.all()] == ["Bob"]


def shown(client: Client, gate: int) -> str:
    answer = client.get(f"/gates/{gate}/")
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


def test_the_page_and_the_inbox_say_who_decided_and_what_happens_when_with_an_undo() -> None:
    gate, person, made = decided()
    page = shown(signed_in(person), gate.pk)
    assert "Approved by you." in page
    assert 'data-as="countdown"' in page
    assert f'action="/gates/{gate.pk}/undos/"' in page
    assert f'name="decision" value="{made.pk}"' in page
    other = bob(gate.team)
    theirs = shown(signed_in(other), gate.pk)
    assert "Approved by Ann Okafor." in theirs
    assert "Until then you can still reject or edit it." in theirs
    assert "/undos/" not in theirs
    page = " ".join(signed_in(other).get("/").content.decode().split())
    assert "Approved, takes effect" in page
    assert 'data-open-count="0"' in page
    everything = " ".join(signed_in(other).get("/?queue=all").content.decode().split())
    assert everything.count("Approved, takes effect") == 1
    gate = make_held(gate.team)
    decide(gate, person, "reject")
    page = shown(signed_in(other), gate.pk)
    assert "Until it is undone, nobody else can approve or edit it." in page
    assert "Until then you can still reject or edit it." not in page


def test_the_form_takes_it_back_and_leads_to_the_decision_again() -> None:
    gate, person, made = decided()
    client = signed_in(person)
    answer = client.post(f"/gates/{gate.pk}/undos/", {"decision": made.pk})
    assert (answer.status_code, answer["Location"]) == (303, f"/gates/{gate.pk}/?undone={made.pk}#decide")
    assert now(gate).settles_at is None
    assert "Your decision" in shown(client, gate.pk)
    page = client.get(answer["Location"]).content.decode()
    assert "Your approval was undone." in page
    assert "Nothing was done." in page
    assert "was undone" not in signed_in(bob(gate.team)).get(answer["Location"]).content.decode()
    decide(gate, person)
    assert "was undone" not in client.get(answer["Location"]).content.decode()
    client.post(f"/gates/{gate.pk}/undos/")
    again = client.post(f"/gates/{gate.pk}/undos/", {"decision": made.pk})
    assert again.status_code == 409
    assert "There is nothing to undo." in again.content.decode()


def test_a_form_that_is_sent_again_after_the_undo_says_that_it_decided_nothing() -> None:
    """Back in the browser and sent once more, it led on to the next gate as if it had been recorded."""
    team = make_team()
    gate, person = make_held(team), ann(team)
    client = signed_in(person)
    filled = form_of(gate)
    assert client.post(f"/gates/{gate.pk}/decisions/", filled).status_code == 303
    assert now(gate).settles_as == "approved"
    client.post(f"/gates/{gate.pk}/undos/")
    answer = client.post(f"/gates/{gate.pk}/decisions/", filled)
    assert answer.status_code == 409
    page = answer.content.decode()
    assert "This form was sent before" in page
    assert now(gate).settles_at is None
    [key] = set(re.findall(r'name="key" value="(\w+)"', page))
    assert key != filled["key"]
    assert client.post(f"/gates/{gate.pk}/decisions/", {**filled, "key": key}).status_code == 303
    assert now(gate).settles_as == "approved"


def test_the_key_of_every_undo_is_u_and_never_the_key_of_the_decisions_form() -> None:
    """`Undo [fe82491e…]`: the page's `key`, under which its form counts once, was drawn as the button's key."""
    team = make_team()
    first, second = make_held(team), make_held(team)
    client = signed_in(ann(team))
    client.post(f"/gates/{first.pk}/decisions/", form_of(first))
    for page in (shown(client, first.pk), client.get(f"/gates/{second.pk}/?decided={first.pk}").content.decode()):
        forms = re.findall(r'<form class="undo".*?</form>', page, re.DOTALL)
        keys = [set(re.findall(r'data-hotkey="([^"]*)"|<kbd class="key">([^<]*)</kbd>', form)) for form in forms]
        assert {("u", ""), ("", "u")} in keys
        assert all(each <= {("u", ""), ("", "u")} for each in keys)
        assert all("csrfmiddlewaretoken" in form for form in forms)
