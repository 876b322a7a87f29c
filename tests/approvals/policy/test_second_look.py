"""Somebody who approves faster than anybody reads looks once more, and goes on."""

from __future__ import annotations

import re
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, User

from approvals.errors import SecondLookNeeded
from approvals.models import Decision, Gate
from approvals.policy import second_look
from approvals.policy.second_look import Streak, streak
from checkpoints.models import Event
from checkpoints.values.canonical_json import decode_canonical
from tests.factories import MEMBER, ann, decide, make_gate, make_team, make_user
from tests.factories.tokens import bearing, make_token
from tests.harness.altered_rows import altered
from tests.harness.signed_in_clients import form_of, signed_in

NOW = datetime(2026, 11, 23, 12, 0, 0, tzinfo=UTC)


@pytest.fixture(autouse=True)
def as_shipped(settings: Any) -> None:
    settings.HOLDPOINT_STREAK, settings.HOLDPOINT_STREAK_SECONDS = 10, 5.0


def approvals(number: int, *, pause: float, ago: float = 1.0) -> list[tuple[datetime, bool]]:
    """So many, the newest first."""
    return [(NOW - timedelta(seconds=ago + pause * n), False) for n in range(number)]


@pytest.mark.parametrize(
    ("found", "made"),
    [
        (approvals(10, pause=1), Streak(10, 9)),
        (approvals(9, pause=1), None),
        (approvals(10, pause=5), None),
        (approvals(10, pause=4.9), Streak(10, 44)),
        (approvals(10, pause=1, ago=601), None),
        ([*approvals(10, pause=1)[:8], *approvals(2, pause=60, ago=300)], Streak(10, 359)),
        ([*approvals(3, pause=1), *approvals(7, pause=60, ago=300)], None),
        ([*approvals(9, pause=1), (NOW - timedelta(seconds=12), True)], Streak(10, 11)),
        ([*approvals(5, pause=1), (NOW - timedelta(seconds=8), True), *approvals(9, pause=1, ago=9)], None),
    ],
)
def test_a_streak_is_many_approvals_each_too_short_to_have_read(found: Any, made: Streak | None) -> None:
    assert streak(found, now=NOW) == made


def queue(number: int) -> tuple[Group, User, list[Gate]]:
    team = make_team(may=MEMBER)
    return team, make_user("Rita Reviewer", team), [make_gate(team=team) for _ in range(number)]


def test_the_eleventh_fast_approval_needs_a_second_look_and_the_next_ones_none() -> None:
    """Fifteen approvals in nine seconds passed unremarked."""
    _, rita, gates = queue(16)
    for gate in gates[:10]:
        decide(gate, rita)
    with pytest.raises(SecondLookNeeded, match=r"You approved 10 in \d+ seconds?\. Look once more"):
        decide(gates[10], rita)
    decide(gates[10], rita, second_look=True)
    for gate in gates[11:]:
        decide(gate, rita)
    assert Decision.objects.filter(user=rita).count() == 16
    assert [each.second_look for each in Decision.objects.filter(user=rita).order_by("pk")].index(True) == 10


def test_the_streak_is_in_the_audit_and_so_is_that_it_was_looked_at_twice() -> None:
    _, rita, gates = queue(11)
    for gate in gates[:10]:
        decide(gate, rita)
    with pytest.raises(SecondLookNeeded):
        decide(gates[10], rita)
    refused = Event.objects.get(kind="decision.refused", subject=gates[10].subject)
    data = decode_canonical(bytes(refused.data))
    assert (data["kind"], data["streak"]) == ("second_look", 10)
    decide(gates[10], rita, second_look=True)
    assert (
        decode_canonical(bytes(Event.objects.get(kind="gate.decided", subject=gates[10].subject).data))["second_look"]
        is True
    )
    assert "second_look" not in decode_canonical(
        bytes(Event.objects.get(kind="gate.decided", subject=gates[0].subject).data)
    )


def test_a_rejection_needs_none() -> None:
    _, rita, gates = queue(11)
    for gate in gates[:10]:
        decide(gate, rita)
    decide(gates[10], rita, "reject", comment="No.", then="stop")
    assert Gate.objects.get(pk=gates[10].pk).outcome.kind == "rejected"


def test_rejections_make_no_streak_and_neither_do_others_approvals() -> None:
    team, rita, gates = queue(12)
    for gate in gates[:5]:
        decide(gate, rita, "reject", comment="No.", then="stop")
    for gate in gates[5:11]:
        decide(gate, ann(team))
    assert decide(gates[11], rita).second_look is False


def test_a_tick_that_nothing_asked_for_keeps_no_streak_from_beginning() -> None:
    _, rita, gates = queue(11)
    for gate in gates[:10]:
        decide(gate, rita, second_look=True)
    with pytest.raises(SecondLookNeeded):
        decide(gates[10], rita)


def test_whoever_takes_time_is_not_asked() -> None:
    _, rita, gates = queue(11)
    stack = ExitStack()
    for number, gate in enumerate(gates[:10]):
        made = decide(gate, rita)
        stack.enter_context(altered(made, created_at=made.created_at - timedelta(seconds=10 * (10 - number))))
    decide(gates[10], rita)
    approvals = list(second_look.recent(rita.pk).values_list("created_at", "second_look"))
    assert second_look.streak(approvals, now=datetime.now(UTC)) is None
    stack.close()


def test_a_token_of_a_person_is_asked_too() -> None:
    _, rita, gates = queue(11)
    _, sent = make_token(rita, "gates:decide", "gates:read")
    program = bearing(sent)
    for gate in gates[:10]:
        decide(gate, rita)
    body = {"seen": bytes(gates[10].standing().digest).hex(), "verdict": "approve"}
    address = f"/api/gates/{gates[10].pk}/decisions"
    refused = program.post(address, body, content_type="application/json")
    assert (refused.status_code, refused.json()["code"]) == (422, "second_look")
    assert [each["parameter"] for each in refused.json()["errors"]] == ["/second_look"]
    assert program.post(address, body | {"second_look": True}, content_type="application/json").status_code == 201


def test_the_page_draws_the_box_and_takes_it() -> None:
    _, rita, gates = queue(11)
    reader = signed_in(rita)
    assert "second_look" not in reader.get(f"/gates/{gates[10].pk}/").content.decode()
    for gate in gates[:10]:
        decide(gate, rita)
    page = reader.get(f"/gates/{gates[10].pk}/").content.decode()
    assert re.search(r"You approved 10 in \d+ seconds?\. Look once more\.", page)
    form = form_of(gates[10])
    refused = reader.post(f"/gates/{gates[10].pk}/decisions/", form)
    assert refused.status_code == 422
    assert 'name="second_look"' in refused.content.decode()
    assert Gate.objects.get(pk=gates[10].pk).status == Gate.Status.OPEN
    assert reader.post(f"/gates/{gates[10].pk}/decisions/", form | {"second_look": "yes"}).status_code in (
        200,
        302,
        303,
    )
    assert Gate.objects.get(pk=gates[10].pk).status == Gate.Status.DECIDED
