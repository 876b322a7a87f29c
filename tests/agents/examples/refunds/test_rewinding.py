"""A finished refund whose order turns out to be in another currency: what was paid is taken back and paid anew."""

from __future__ import annotations

from django.core import mail as outbox

from agents.models import Effect
from agents.moves import impact, rewind
from checkpoints.models import Checkpoint, Run
from tests.factories import make_user
from tests.factories.driven_runs import advance_to_rest, decide, open_gate, state

from .conftest import World
from .refund_runs import make_refund_run

PATCH = [{"op": "replace", "path": "/order/currency", "value": "USD"}]


def test_what_the_page_said_is_what_comes_true(world: World) -> None:
    run = make_refund_run("01")
    decide(run)
    assert advance_to_rest(run).status == "completed"
    charge = state(run)["order"]["charge"]
    at = Checkpoint.objects.get(run=run, step="find_order").seq
    by = make_user("Bob Lindqvist", run.team)

    shown = impact.of_edit(run, at, PATCH)
    rows_shown = {(row.verdict, row.step) for row in shown.rows}
    assert rows_shown >= {
        ("stands", "read_mail"), ("stands", "find_order"), ("will", "ask_facts"), ("will", "ask_doubts"),
        ("will", "propose"),
        ("will", "review"), ("undone", "pay"), ("cannot", "reply"),
    }  # fmt: skip

    seq = run.seq
    rewind.edit(run, at=at, patch=PATCH, by=by, seen=shown.digest())
    advance_to_rest(run)
    assert open_gate(run).title.startswith("Refund $")
    [offered] = open_gate(run).standing().card.preconditions
    assert offered.label == "Nothing else has been refunded on this charge: {value}"  # the run's own refund is there
    assert ran(run, seq) == ["ask_facts", "ask_doubts", "propose"]
    decide(run)
    assert advance_to_rest(run).status == "completed"

    refunds = [it for it in world.http.get("/ledger").json()["refunds"] if it["charge"] == charge]
    assert [(refund["currency"], refund["status"]) for refund in refunds] == [
        ("EUR", "cancelled"),
        ("USD", "succeeded"),
    ]
    rows = Effect.objects.filter(run=run, undoes=None).order_by("pk")
    assert [(row.step, row.status) for row in rows] == [
        ("pay", "undone"), ("reply", "kept"), ("pay", "done"), ("reply", "done"),
    ]  # fmt: skip
    assert len(outbox.outbox) == 2


def ran(run: Run, since: int) -> list[str]:
    """The steps that were executed, and not reused, after a checkpoint."""
    places = Checkpoint.objects.filter(run=run, seq__gt=since, kind__in=["step", "gate"]).order_by("seq")
    return list(places.values_list("step", flat=True))
