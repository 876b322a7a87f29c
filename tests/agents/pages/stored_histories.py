"""Runs with a past, written through the store as a worker would, without one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib.auth.models import Group, User

from agents.models import Effect, Failure
from approvals.models import Gate
from checkpoints import actors, store
from checkpoints.events import event_log
from checkpoints.events.event_proof import ROWS
from checkpoints.layout.snapshot import Header, Snapshot
from checkpoints.models import Checkpoint, Run
from checkpoints.store import claims
from checkpoints.values.canonical_json import encode_canonical
from checkpoints.values.ops import Write
from tests.factories import make_card, make_gate, make_plan, make_run, make_spec, make_state, unique

ORDER = {"number": "A-20418", "customer": "Marit Ellery", "total": "1403.90", "paid_on": "2026-02-11"}
INPUT, CODE = b"\0" * 32, b"\1" * 32  # of every execution here
PROPOSAL = {"amount": "1284.00", "currency": "EUR", "reply": "Dear Marit, here you are.", "note": None}


class Walk:
    """Takes one run from checkpoint to checkpoint."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.go_on()

    def go_on(self) -> None:
        Run.objects.filter(pk=self.run.pk, status=Run.Status.QUEUED).update(wake_at=None)
        claim = claims.claim(self.run.pk, plan_ids=[self.run.plan_id], worker="walk", lease=60)
        assert claim is not None, f"{self.run} is not there to be claimed"
        self.claim = claim
        self.at: Snapshot = store.load(self.fresh())

    def fresh(self) -> Run:
        self.run.refresh_from_db()
        return self.run

    def save(
        self, step: str, writes: Mapping[str, Write], then: str, *, kind: str = "step", took: float = 0.4, **how: Any
    ) -> Snapshot:
        ran = kind in ("step", "gate", "reused")
        header = Header(
            kind, step, then, took_us=int(took * 1_000_000), attempt=how.pop("attempt", 1),
            occurrence=how.pop("occurrence", 0), input_digest=INPUT if ran else None, code_hash=CODE if ran else None,
        )  # fmt: skip
        actor = actors.of_agent(self.run.plan.agent)
        before = self.at.id
        self.at = store.save(self.at, dict(writes), claim=self.claim, header=header, actor=actor, **how)
        for row in Effect.objects.filter(run=self.run, step=step, base=before, undoes=None, status="done"):
            row.landed(self.at.id)
        return self.at

    def rewind(self, seq: int, then: str, writes: Mapping[str, Write] | None = None) -> Snapshot:
        target = store.load_checkpoint(Checkpoint.objects.get(run=self.run, seq=seq).pk)
        header = Header("rewind", "review", then)
        self.at = store.move_head(target, dict(writes or {}), claim=self.claim, header=header)
        return self.at

    def fail(self, step: str, error: str = "TimeoutError: the shop did not answer", attempt: int = 1) -> Failure:
        trace = f'Traceback (most recent call last):\n  File "refunds.py", line 41, in {step}\n{error}\n'
        return Failure.objects.create(
            run=self.run, base=self.at.id, step=step, attempt=attempt, error=error, traceback=trace.encode()
        )

    def effect(self, step: str, status: str = "done", **columns: Any) -> Effect:
        """A row of the effect ledger, started from where the walk stands."""
        given = {
            "irreversible": False,
            "result": encode_canonical({}),
            "input_digest": INPUT,
            "token": self.claim.token,
        }
        key = unique(step).encode().hex().ljust(64, "0")[-64:]
        row = Effect.objects.create(
            run=self.run, base=self.at.id, step=step, status=status, key=key, **(given | columns)
        )
        data = {"step": step, ROWS: row.covered}
        event_log.record(f"effect.{status}", subject=row.subject, by=actors.SYSTEM, run=self.run, data=data)
        return row

    def release(self, status: str, reason: str = "", *, freeze: bool = False) -> Run:
        claims.release(self.claim, status=status, reason=reason, by=actors.SYSTEM, freeze=freeze)
        return self.fresh()

    def ask(self, **how: Any) -> Gate:
        Run.objects.filter(pk=self.run.pk).update(status=Run.Status.QUEUED, lease_until=None)
        return make_gate(run=self.fresh(), **how)


def begin(team: Group | None = None, *, started_by: User | None = None, title: str = "Refund for Marit Ellery") -> Walk:
    """A walk at the input of a new run of the plan find_order, propose, review, pay, reply."""
    plan = make_plan(make_spec())
    state = make_state(order={}, proposal=None)
    return Walk(
        make_run(team=team, plan=plan, started_by=started_by, state=state, title=title, first_step="find_order")
    )


def held(team: Group | None = None, *, started_by: User | None = None, title: str = "Refund for Marit Ellery") -> Gate:
    """A run that stands at its gate, three checkpoints long."""
    walk = begin(team, started_by=started_by, title=title)
    walk.save("find_order", {"order": ORDER}, "propose")
    walk.save(
        "propose", {"proposal": PROPOSAL}, "review", took=5.8, notes=["Two frames came back, the lenses did not."]
    )
    return walk.ask(card=make_card(title=title))


def sent_back(team: Group | None = None, *, by: User, started_by: User | None = None, **how: Any) -> Walk:
    """A run whose first proposal `by` rejected; it stands after the second, before the gate."""
    from tests.factories import decide

    gate = held(team, started_by=started_by, **how)
    decide(gate, by, "reject", then="back", back_to="propose", comment="Only the frames came back.")
    walk = Walk(gate.run)
    walk.save("review", {}, "propose", kind="gate", took=0)
    walk.rewind(2, "propose", {"feedback": [{"text": "Only the frames came back.", "by": "Bob Lindqvist"}]})
    walk.save("propose", {"proposal": PROPOSAL | {"amount": "642.00"}}, "review", took=6.2)
    return walk
