"""What became of an approval, wherever it is shown: "You approved 7 gates" was said for ever, and 3 had run."""

from __future__ import annotations

import re

from django.contrib.auth.models import User

from agents.moves.cancel import cancel
from agents.moves.rewind import rewind
from approvals.consequences.outcome_fates import read_fates
from approvals.models import BulkItem, BulkOrder, Gate
from checkpoints.actors import SYSTEM
from checkpoints.models import Event
from tests.factories import ann, make_team
from tests.factories.driven_runs import advance, decide, open_gate
from tests.factories.tokens import bearing, make_token
from tests.harness.sent_statements import sent
from tests.harness.signed_in_clients import signed_in

from .watched_world import World


def approved(world: World, *, moved: bool, order: BulkOrder | None = None, by: User | None = None) -> Gate:
    """An approved gate whose run went on, in a world that `moved` before the effect."""
    world.says("0.00")
    run = advance(world.run(team=by.groups.get()) if by else world.run())
    gate = open_gate(run)
    decide(run, preconditions=["balance"], key=f"bulk:{order.pk}:{gate.pk}" if order else f"alone {gate.pk}", by=by)
    if moved:
        world.says("5.00")
    advance(run)
    return Gate.objects.get(pk=gate.pk)


def words(page: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", page).split())


def read(gate: Gate) -> Gate:
    return Gate.objects.select_related("run__plan", "outcome__proposal").get(pk=gate.pk)


def test_a_gate_whose_safety_check_failed_names_the_gate_that_asks_again_and_why(world: World) -> None:
    gate = approved(world, moved=True)
    again = open_gate(gate.run)
    client = signed_in(ann(gate.team))
    for address in (f"/gates/{gate.pk}/", f"/gates/{gate.pk}/receipt/", "/?queue=decided"):
        page = client.get(address).content.decode()
        assert f'href="/gates/{again.pk}/"' in page, address
        assert f"Asked again in gate {again.pk}" in words(page), address
        assert "may run" not in words(page), address
    page = words(client.get(f"/gates/{gate.pk}/").content.decode())
    assert "“the balance is still” no longer holds" in page
    assert gate.replacement() == again
    assert Event.objects.filter(kind="gate.replaced", subject=gate.subject).exists()


def test_what_was_done_is_said_to_be_done(world: World) -> None:
    gate = approved(world, moved=False)
    client = signed_in(ann(gate.team))
    page = words(client.get(f"/gates/{gate.pk}/").content.decode())
    assert "“Pay” and “Tell”: done." in page
    assert "Done" in words(client.get("/?queue=decided").content.decode())


def test_a_bulk_decision_says_how_many_were_done_and_how_many_are_asked_again(world: World) -> None:
    reader = ann(make_team())
    order = BulkOrder.objects.create(user=reader, key="k", verdict="approve", request=b"", comment=b"")
    done, again = (approved(world, moved=moved, order=order, by=reader) for moved in (False, True))
    for number, gate in enumerate((done, again)):
        BulkItem.objects.create(order=order, gate_id=gate.pk, number=number, seen=b"")
    page = signed_in(reader).get(f"/inbox/bulk/{order.pk}/").content.decode()
    assert "1 done, 1 asked again: “the balance is still” no longer holds" in words(page)
    assert f'href="/gates/{open_gate(again.run).pk}/"' in page
    assert f"run:{again.run_id}" in page


def test_the_api_tells_the_same(world: World) -> None:
    gate = approved(world, moved=True)
    again = open_gate(gate.run)
    told = bearing(make_token(ann(gate.team))[1]).get(f"/api/gates/{gate.pk}").json()
    assert told["replaced_by"] == again.pk
    assert told["became"] == {
        "state": "asked_again", "words": f"Asked again in gate {again.pk}: “the balance is still” no longer holds",
        "gate": again.pk,
        "effects": [{"effect": name, "action": "pay", "state": "asked_again"} for name in ("pay", "tell")],
    }  # fmt: skip


def test_a_list_of_gates_is_read_by_two_statements(world: World) -> None:
    gates = [read(approved(world, moved=moved)) for moved in (True, False, True)]
    with sent() as statements:
        fates = read_fates(gates)
    assert [fates[gate.pk].state for gate in gates] == ["asked_again", "done", "asked_again"]
    assert len(statements) == 2


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
    gate = approved(world, moved=False)
    run = gate.run
    assert states(gate) == {"pay": "done", "tell": "failed"}
    rewind(run, to=1, by=ann(gate.team), confirm=True)
    assert states(gate)["pay"] == "done"
    cancel(run, by=SYSTEM, reason="No longer wanted.")
    assert advance(run).status == "cancelled"
    assert states(gate) == {"pay": "undone", "tell": "failed"}


def states(gate: Gate) -> dict[str, str]:
    return {each.grant.effect: each.state for each in read_fates([read(gate)])[gate.pk].grants}
