"""What was done before comes first, and what became of an approval is said wherever it is shown."""

from __future__ import annotations

import re
import secrets

import pytest
from django.contrib.auth.models import Group, User
from django.db import connection
from django.utils import timezone

from agents.models import Effect
from agents.moves.cancel import cancel
from agents.moves.rewind import rewind
from approvals.cards.action import Action
from approvals.cards.likeness import likeness_of
from approvals.consequences.done_before import LATELY, done_before
from approvals.consequences.performed import read_fates
from approvals.decisions.bulk import orders
from approvals.decisions.bulk.carrying_out import carry_out
from approvals.decisions.bulk.orders import BulkChoice, BulkSubmission
from approvals.gates import closing
from approvals.models import BulkItem, BulkOrder, Gate, Grant, Policy
from approvals.presentation.gate_page.earlier import say_done
from checkpoints import crash_points
from checkpoints.actors import SYSTEM
from checkpoints.models import Event
from tests.approvals.bulk.bulk_forms import preview
from tests.approvals.cards.preconditions.watched_world import World
from tests.factories import ann, make_policy, make_team, mira
from tests.factories.driven_runs import advance, advance_to_rest, decide, open_gate
from tests.factories.tokens import bearing, make_token
from tests.harness.altered_rows import owner
from tests.harness.signed_in_clients import signed_in


def paid(world: World, team: Group) -> Gate:
    run = advance(world.run(team=team))
    gate = open_gate(run)
    decide(run)
    assert advance(run).status == "completed"
    return gate


def asking(world: World, team: Group) -> Gate:
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


def test_what_was_done_before_is_not_approved_together_with_others_but_long_ago(world: World) -> None:
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
    # Once done, the same could never again be decided together with others: long ago, it is said and refuses nothing.
    ago = timezone.now() - LATELY
    Effect.objects.update(intended_at=ago, settled_at=ago)
    assert [each.same for each in done_before(gates, reader=reader)[gates[0].pk]] == [True]
    order = approve(gates, reader)
    carry_out(order, by=reader)
    assert {each.code for each in order.items.all()} == {""}


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


def test_another_team_is_told_nothing_and_whoever_may_not_see_the_gate_no_numbers(world: World) -> None:
    team, other = make_team(), make_team("Finance")
    before, gate = paid(world, team), asking(world, team)
    assert done_before([asking(world, other)], reader=ann(other)) == {}
    [told] = done_before([gate], reader=mira(other))[gate.pk]
    assert (told.gate, told.run, told.action) == (0, 0, None)
    assert f"R-{before.run_id}" not in say_done(told, "", outside=False)
    assert say_done(told, "", outside=False).endswith("by another run")


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


def decided(world: World, *, moved: bool, order: BulkOrder | None = None, by: User | None = None) -> Gate:
    """An approved gate whose run went on, in a world that `moved` before the effect."""
    world.says("0.00")
    run = advance(world.run(team=by.groups.get()) if by else world.run())
    gate = open_gate(run)
    decide(run, preconditions=["balance"], key=f"bulk:{order.pk}:{gate.pk}" if order else f"alone {gate.pk}", by=by)
    if moved:
        world.says("5.00")
    advance(run)
    return Gate.objects.get(pk=gate.pk)


def words_of(page: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", page).split())


def read(gate: Gate) -> Gate:
    return Gate.objects.select_related("run__plan", "outcome__proposal").get(pk=gate.pk)


def test_a_gate_whose_safety_check_failed_names_the_gate_that_asks_again_and_why(world: World) -> None:
    gate = decided(world, moved=True)
    again = open_gate(gate.run)
    client = signed_in(ann(gate.team))
    for address in (f"/gates/{gate.pk}/", f"/gates/{gate.pk}/receipt/", "/?queue=decided"):
        page = client.get(address).content.decode()
        assert f'href="/gates/{again.pk}/"' in page, address
        assert f"Asked again in gate {again.pk}" in words_of(page), address
        assert "may run" not in words_of(page), address
    page = words_of(client.get(f"/gates/{gate.pk}/").content.decode())
    assert "“the balance is still” no longer holds" in page
    assert gate.replacement() == again
    assert Event.objects.filter(kind="gate.replaced", subject=gate.subject).exists()

    told = bearing(make_token(ann(gate.team))[1]).get(f"/api/gates/{gate.pk}").json()
    assert told["replaced_by"] == again.pk
    assert told["became"] == {
        "state": "asked_again", "words": f"Asked again in gate {again.pk}: “the balance is still” no longer holds",
        "gate": again.pk,
        "effects": [{"effect": name, "action": "pay", "state": "asked_again"} for name in ("pay", "tell")],
    }  # fmt: skip


def test_a_bulk_decision_says_how_many_were_done_and_how_many_are_asked_again(world: World) -> None:
    reader = ann(make_team())
    order = BulkOrder.objects.create(user=reader, key="k", verdict="approve", request=b"", comment=b"")
    done, again = (decided(world, moved=moved, order=order, by=reader) for moved in (False, True))
    for number, gate in enumerate((done, again)):
        BulkItem.objects.create(order=order, gate_id=gate.pk, number=number, seen=b"")
    page = signed_in(reader).get(f"/inbox/bulk/{order.pk}/").content.decode()
    assert "1 done, 1 asked again: “the balance is still” no longer holds" in words_of(page)
    assert f'href="/gates/{open_gate(again.run).pk}/"' in page
    assert f"run:{again.run_id}" in page


def test_a_run_that_was_cancelled_or_sent_back_never_did_what_was_approved(world: World) -> None:
    runs = [advance(world.run()) for _ in range(3)]
    gates = [open_gate(run) for run in runs]
    for run in runs:
        decide(run)
    cancel(runs[0], by=SYSTEM, reason="No longer wanted.")
    rewind(runs[1], to=1, by=ann(runs[1].team))
    states = [read_fates([read(gate)])[gate.pk].state for gate in gates]
    assert states == ["never", "elsewhere", "waiting"]


def test_what_was_undone_later_is_not_called_done(world: World) -> None:
    world.deaf()
    gate = decided(world, moved=False)
    run = gate.run
    assert states(gate) == {"pay": "done", "tell": "failed"}
    rewind(run, to=1, by=ann(gate.team), confirm=True)
    assert states(gate)["pay"] == "done"
    cancel(run, by=SYSTEM, reason="No longer wanted.")
    assert advance(run).status == "cancelled"
    assert states(gate) == {"pay": "undone", "tell": "failed"}


def states(gate: Gate) -> dict[str, str]:
    return {each.grant.effect: each.state for each in read_fates([read(gate)])[gate.pk].grants}


NAMES = ("same_arguments", "same_key", "same_resource")


def test_grants_that_the_release_before_wrote_get_the_digests_that_they_would_have_got(world: World) -> None:
    """For a month after an update nothing warned of what they had allowed."""
    team = make_team()
    before = paid(world, team)
    had = {row[0]: row[1:] for row in Grant.objects.values_list("pk", *NAMES)}
    role = connection.settings_dict["USER"]
    with owner() as made:  # as `config.migrate` works; the application may not change these rows
        made.execute(f'GRANT UPDATE ON approvals_grant TO "{role}"'.encode())
        try:
            Grant.objects.update(**dict.fromkeys(NAMES, ""))
            gate = asking(world, team)
            assert done_before([gate], reader=ann(team)) == {}
            assert closing.fill_in() == len(had) > 0
        finally:
            made.execute(f'REVOKE UPDATE ON approvals_grant FROM "{role}"'.encode())
    assert {row[0]: row[1:] for row in Grant.objects.filter(pk__in=had).values_list("pk", *NAMES)} == had
    [found] = done_before([gate], reader=ann(team))[gate.pk]
    assert (found.how, found.gate) == ("arguments", before.pk)
