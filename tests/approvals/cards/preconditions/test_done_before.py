"""What another run has done already comes first: of an invoice paid an hour ago only its rejected mail was told."""

from __future__ import annotations

import secrets

import pytest
from django.contrib.auth.models import Group, User
from django.utils import timezone

from agents.models import Effect
from approvals.cards.action import Action
from approvals.cards.likeness import likeness_of
from approvals.consequences.done_before import LATELY, DoneBefore, done_before
from approvals.decisions.bulk import orders
from approvals.decisions.bulk.carrying_out import carry_out
from approvals.decisions.bulk.orders import BulkChoice, BulkSubmission
from approvals.models import BulkOrder, Gate, Policy
from approvals.presentation.gate_page.done_words import say_done
from checkpoints import crash_points
from tests.approvals.bulk.bulk_forms import preview
from tests.factories import ann, make_policy, make_team, mira
from tests.factories.driven_runs import advance, advance_to_rest, decide, open_gate
from tests.harness.sent_statements import sent
from tests.harness.signed_in_clients import signed_in

from .watched_world import World


def paid(world: World, team: Group) -> Gate:
    """A gate under which it was paid."""
    run = advance(world.run(team=team))
    gate = open_gate(run)
    decide(run)
    assert advance(run).status == "completed"
    return gate


def asking(world: World, team: Group) -> Gate:
    """An open gate for the same."""
    return open_gate(advance(world.run(team=team)))


def test_what_another_run_has_done_is_said_in_the_row_on_the_page_and_by_the_api(world: World) -> None:
    team = make_team()
    before, gate = paid(world, team), asking(world, team)
    client = signed_in(ann(team))
    said = f"by R-{before.run_id} (gate {before.pk})"
    for address in ("/?queue=all", f"/gates/{gate.pk}/", f"/gates/{gate.pk}/preview/"):
        page = client.get(address).content.decode()
        assert "“Pay” was done" in page, address
        assert said in page, address
    page = client.get(f"/gates/{gate.pk}/").content.decode()
    assert page.index('id="done-before"') < page.index('id="gate-head"')
    told = client.get(f"/api/gates/{gate.pk}/impacts").json()["done_before"]
    assert [(each["how"], each["done"], each["gate"], each["run"]) for each in told] == [
        ("arguments", True, before.pk, before.run_id)
    ]
    assert said in told[0]["words"]


def test_what_was_done_before_is_not_approved_together_with_others(world: World) -> None:
    """It was offered to decide once for these three."""
    team = make_team()
    policy_for_many(team)
    paid(world, team)
    gates = [asking(world, team) for _ in range(2)]
    reader = ann(team)
    page = signed_in(reader).get(f"/gates/{gates[0].pk}/").content.decode()
    assert "Decide once for these" not in page
    assert "The same was done before." in page
    order = approve(gates, reader)
    carry_out(order, by=reader)
    assert {each.code for each in order.items.all()} == {"done_already"}
    assert {gate.status for gate in Gate.objects.filter(pk__in=[gate.pk for gate in gates])} == {"open"}


def policy_for_many(team: Group) -> None:
    policy = make_policy(team, name="default")
    Policy.objects.filter(pk=policy.pk).update(bulk_risk="medium")


def approve(gates: list[Gate], reader: User) -> BulkOrder:
    choices = [BulkChoice(gate.pk, bytes(gate.standing().digest)) for gate in gates]
    sent = BulkSubmission(key=secrets.token_hex(8), verdict="approve", gates=choices, comment="All.", second_look=True)
    return orders.take(sent, by=reader)


def test_what_an_order_lets_run_does_not_refuse_the_rest_of_it(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a worker was quick, the first of several equal gates was paid and the others were refused for that."""
    team = make_team()
    policy_for_many(team)
    gates, reader = [asking(world, team) for _ in range(5)], ann(team)
    shown = preview(signed_in(reader), gates)
    assert "5 of these ask for exactly the same as another of them" in " ".join(shown.split())
    order = approve(gates, reader)

    def work(name: str, *_: object) -> None:
        if name == crash_points.OF_BULK:
            ran.extend(advance_to_rest(gate.run).status for gate in gates)

    ran: list[str] = []
    monkeypatch.setattr(crash_points, "point", work)
    carry_out(order, by=reader)
    assert ran[:2] == ["completed", "waiting"]
    assert {each.code for each in order.items.all()} == {""}
    assert set(Gate.objects.filter(pk__in=[gate.pk for gate in gates]).values_list("status", flat=True)) == {"decided"}


def test_what_was_done_long_ago_is_said_and_refuses_nothing(world: World) -> None:
    """Once done, the same could never again be decided together with others."""
    team = make_team()
    policy_for_many(team)
    paid(world, team)
    ago = timezone.now() - LATELY
    Effect.objects.update(intended_at=ago, settled_at=ago)
    gates, reader = [asking(world, team) for _ in range(2)], ann(team)
    assert [each.same for each in done_before(gates, reader=reader)[gates[0].pk]] == [True]
    order = approve(gates, reader)
    carry_out(order, by=reader)
    assert {each.code for each in order.items.all()} == {""}


def test_another_team_is_told_nothing_and_whoever_may_not_see_the_gate_no_numbers(world: World) -> None:
    team, other = make_team(), make_team("Finance")
    before, gate = paid(world, team), asking(world, team)
    assert done_before([asking(world, other)], reader=ann(other)) == {}
    [told] = done_before([gate], reader=mira(other))[gate.pk]
    assert (told.gate, told.run, told.action) == (0, 0, None)
    assert f"R-{before.run_id}" not in say_done(told, "", outside=False)
    assert say_done(told, "", outside=False).endswith("by another run")


def test_a_list_of_gates_takes_one_statement_and_two_more_where_something_was_done(world: World) -> None:
    team = make_team()
    opened = [asking(world, team) for _ in range(3)]
    gates = list(Gate.objects.filter(pk__in=[gate.pk for gate in opened]).select_related("run"))
    reader = ann(team)
    with sent() as statements:
        assert done_before(gates, reader=reader) == {}
    assert len(statements) == 1
    paid(world, team)
    with sent() as statements:
        assert len(done_before(gates, reader=reader)) == 3
    assert len(statements) == 3


def test_the_pinned_fields_are_a_key_where_they_are_two_and_one_names_something() -> None:
    def likeness(arguments: dict[str, str], *pinned: str, team: int = 1) -> tuple[str, str, str]:
        return likeness_of(team, Action(id="pay", tool="pay", arguments=arguments, pinned=pinned), "order 7")

    one = likeness({"iban": "DE02", "amount": "9.00", "memo": "a"}, "/iban", "/amount")
    other = likeness({"iban": "DE02", "amount": "9.00", "memo": "b"}, "/iban", "/amount")
    assert one[0] != other[0]
    assert one[1:] == other[1:]
    assert one[1]
    assert likeness({"iban": "DE02", "amount": "9.00"}, "/amount")[1] == ""
    assert likeness({"to": "m@example.org"}, "/to")[1] == ""
    assert likeness({"amount": "9.00", "currency": "EUR"}, "/amount", "/currency")[1] == ""
    assert {*likeness({"iban": "DE02"}, team=2)} & {*likeness({"iban": "DE02"})} == {""}


def test_what_was_done_is_said_by_its_verb_and_for_another_request_with_the_thing(world: World) -> None:
    team = make_team()
    before, gate = paid(world, team), asking(world, team)
    [told] = done_before([gate], reader=ann(team))[gate.pk]

    def said(how: str, done: bool) -> str:
        known = DoneBefore(
            how=how, done=done, at=told.at, gate=before.pk, run=before.run_id, effect="Pay a refund", external=False
        )
        return say_done(known, "order 20437", outside=False)

    assert said("resource", True).startswith("Paid a refund for order 20437 at ")
    assert said("resource", True).endswith(f"by R-{before.run_id} (gate {before.pk})")
    assert said("key", False).startswith("May have paid a refund at ")
