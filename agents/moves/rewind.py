"""Moves a run's head by a person's order: a rewind to an earlier checkpoint, an edit of one, or settling at once.

The page asks a running worker to halt, waits a little, and then takes the run over, which fences a worker that did
not halt. Head, gates, holds and event change in one transaction; the next worker finds out what follows from it.

Effects and gates are locked before their run, as reports and decisions do: in the other order they would deadlock.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from agents.compatibility import edited_states
from agents.definition import environment, registry
from agents.definition.feedback import Words, append_words
from agents.effects import hold_left_behind
from agents.errors import ImpactChanged, NeedsConfirmation, RewindNotAllowed, RewindRefused
from agents.ringing import doorbell
from agents.session import gates_beside
from agents.session.run_path import RunPath
from approvals.gates import closing
from approvals.impact import Impact
from approvals.models import Gate
from approvals.policy.step_up import Confirmed
from checkpoints import actors, crash_points, store
from checkpoints.access.permissions import REWIND_RUN, may_in_team, say_missing_permission
from checkpoints.actors import Actor
from checkpoints.errors import NotVerified
from checkpoints.events import event_log
from checkpoints.models import Event, Plan, Run
from checkpoints.runs.plans import input_digest, spec_of
from checkpoints.store import Header, Snapshot, claims
from checkpoints.store.claims import Claim
from checkpoints.values.canonical_json import decode_canonical
from checkpoints.values.ops import Append, Write
from checkpoints.values.patch import Op

from . import confirmation, impact
from .cancel import GateOpened, left_something
from .request import check_goes_on, check_stands, check_taken, edited, plan_of, target_of

HALT_SECONDS = 3.0  # how long to wait for a worker before it is fenced
ORDERED = ("run.rewound", "run.edited", "run.settling")


class _DoneBefore(Exception):
    """The same form was accepted while this one waited for the lock."""


@dataclass(frozen=True, kw_only=True)
class HeadMove:
    """A move of a run's head: its target, and what is written with it."""

    kind: str  # "rewind" or "edit"
    by: User
    target: Snapshot
    look: Callable[[str], Impact]  # the impact, with these words
    reason: str  # of the gates' withdrawal
    writes: dict[str, Any] = field(default_factory=dict)
    words: str = ""
    confirm: bool = False
    seen: str = ""
    newest: int = 0
    key: str = ""


def rewind(
    run: Run, *, to: int, by: User, feedback: str = "", confirm: bool = False, seen: str = "", newest: int = 0,
    key: str = "", confirmed: Confirmed | None = None,
) -> Run:  # fmt: skip
    """Go back to checkpoint `to`, and run the step after it again, whatever is recorded.

    `feedback` is read by the agent where its state has a list for it. `confirm`: an effect that cannot be undone may
    be done once more. `seen` is the hex digest of the impact that was shown; "" where none was. `newest` is the
    number of the newest checkpoint that the sender knew, by which the same order given twice is done once;
    0: any. `key` names the person's form, which is done once as well, wherever the run is by then. `confirmed`: how
    they confirmed who they are. Raises a RewindRefused: RewindNotAllowed, OrderNotConfirmed, ImpactChanged,
    NeedsConfirmation.
    """
    check_may(run, by)
    if _done_before(run, key, by):
        return run
    target = _checked(run, to)
    confirmation.check(run, by, confirmed, plan_of(run, target))
    move = HeadMove(
        kind="rewind", by=by, target=target, look=partial(impact.of_rewind, run, to),
        reason=f"The run was rewound to checkpoint {to}.",
        words=feedback, confirm=confirm, seen=seen, newest=newest, key=key,
    )  # fmt: skip
    return _move(run, move)


def edit(
    run: Run, *, at: int, patch: Sequence[Op], by: User, feedback: str = "", seen: str = "", newest: int = 0,
    key: str = "", confirmed: Confirmed | None = None,
) -> Run:  # fmt: skip
    """Change the state of checkpoint `at` by a JSON Patch, and go on from there; only what reads the change runs.

    Raises as `rewind` does; `errors` of a RewindRefused name the faults that the agent's state finds.
    """
    check_may(run, by)
    if _done_before(run, key, by):
        return run
    target = _checked(run, at)
    confirmation.check(run, by, confirmed, plan_of(run, target))
    move = HeadMove(
        kind="edit", by=by, target=target, look=partial(impact.of_edit, run, at, patch),
        reason=f"The state of checkpoint {at} was edited.",
        writes=edited(run, target, patch), words=feedback, seen=seen, newest=newest, key=key,
    )  # fmt: skip
    return _move(run, move)


def settle_now(run: Run, *, by: User, key: str = "") -> Run:
    """Undo at once what the run left behind, even if a step ahead could reuse it. Raises RewindRefused.

    `key` names the person's form, as for `rewind`.
    """
    check_may(run, by)
    if _done_before(run, key, by):
        return run
    try:
        check_taken(run, run.plan, store.load(run))
    except NotVerified:  # the engine reports that
        check_taken(run, run.plan, None)

    def settle(claim: Claim) -> None:
        if _done_before(run, key, by):
            raise _DoneBefore
        if not left_something(run.pk, RunPath.to(_head(claim))):
            raise RewindRefused("The run has left no effects behind that could be undone.")
        ended = run.status if run.status not in Run.LIVE else run.ending
        reason = run.reason if run.status not in Run.LIVE else run.ending_reason
        actor, was_frozen = actors.of_user(by), run.frozen_at is not None
        claims.release(claim, status=Run.Status.QUEUED, reason=run.reason, freeze=was_frozen, by=actor)
        run.settle_first(ended, reason, by=actor, key=key)

    return _taken_once(run, by, settle)


def _checked(run: Run, seq: int) -> Snapshot:
    """Return the checkpoint to move to. Raises RewindRefused if the run cannot go on from it."""
    target = target_of(run, seq)
    check_goes_on(target)
    check_taken(run, plan_of(run, target), target)
    return target


def check_may(run: Run, by: User) -> None:
    """Raise RewindNotAllowed if this person may not rewind the run."""
    if not may_in_team(by, run.team_id, REWIND_RUN):
        raise RewindNotAllowed(say_missing_permission(by, REWIND_RUN, run.team))


def taken(run: Run, by: User, change: Callable[[Claim], None]) -> Run:
    """Take the run over from any worker, and change it in one transaction; return the run as it is then."""
    halted(run, by)
    return taken_at_once(run, actors.of_user(by), change)


def taken_at_once(run: Run, by: Actor, change: Callable[[Claim], None]) -> Run:
    """Do as `taken`, without asking the worker to halt before."""
    while True:
        try:
            with transaction.atomic():
                gates = gates_beside.lock_with_effects(run.pk)
                run.refresh_from_db(from_queryset=Run.objects.select_for_update())
                change(claims.take_over(run, by))
                if Gate.objects.open().filter(run=run).exclude(pk__in=gates).exists():
                    raise GateOpened
        except GateOpened:
            continue
        run.refresh_from_db()
        doorbell.ring(run.pk, registry.queue_for(run.plan), run.priority)
        return run


def halted(run: Run, by: User) -> None:
    """Ask the run's worker to release it, and wait a moment; a worker that does not is fenced afterwards."""
    if not claims.ask_to_halt(run, actors.of_user(by)):
        return
    until = time.monotonic() + HALT_SECONDS
    while time.monotonic() < until and Run.objects.filter(pk=run.pk, status=Run.Status.RUNNING, halt=True).exists():
        time.sleep(0.05)


def _move(run: Run, move: HeadMove) -> Run:
    def go(claim: Claim) -> None:
        if _done_before(run, move.key, move.by):
            raise _DoneBefore
        check_stands(run, move.target)
        if move.newest not in (0, claim.seq):
            raise ImpactChanged(move.look(move.words))
        if move.seen:
            _check_shown(move)
        crash_points.point("before_rewind", move.target.next_step)
        hold_left_behind.drop_orders(run)
        if move.kind == "rewind":
            _order_again(run, move)
        _save(run, move, claim)
        crash_points.point("after_rewind", move.target.next_step)

    return _taken_once(run, move.by, go)


def _check_shown(move: HeadMove) -> None:
    """Raise ImpactChanged if something else would be done than was shown.

    The page may have shown the impact without the words, or with some: it computes it again a moment after they are
    typed. Their author knows them, so they matter only where they change what is done.
    """
    now = move.look(move.words)
    if now.digest() == move.seen:
        return
    otherwise = move.look("" if move.words else "other words")
    if otherwise.digest() != move.seen:
        raise ImpactChanged(now)
    if not now.does_as(otherwise):
        raise ImpactChanged(now, "Your reason has changed what this would do. See below what it would do now.")


def _taken_once(run: Run, by: User, change: Callable[[Claim], None]) -> Run:
    """Do as `taken`; if `change` finds that the order was done before, only return the run."""
    try:
        return taken(run, by, change)
    except _DoneBefore:
        run.refresh_from_db()
        return run


def _done_before(run: Run, key: str, by: User) -> bool:
    """Tell whether this person's form with this key was accepted; asked again under the lock of the run's row."""
    told = Event.objects.sealable().filter(subject=f"run:{run.pk}", kind__in=ORDERED, actor=actors.of_user(by).id)
    return bool(key) and any(
        decode_canonical(bytes(data)).get("key") == key for data in told.values_list("data", flat=True)
    )


def _order_again(run: Run, move: HeadMove) -> None:
    """Mark an effect to be done again, not reused, if the run is sent back to it. Raises NeedsConfirmation."""
    step = spec_of(plan_of(run, move.target)).step(move.target.next_step)
    digest = input_digest(step, move.target.fields, environment.recorded(run).get("config", {}))
    row = hold_left_behind.sent_to(run.pk, step, digest, RunPath.to(move.target.id))
    if row is None:
        return
    if row.irreversible and not move.confirm:
        raise NeedsConfirmation([step.name])
    row.order_again(by=actors.of_user(move.by))


def _save(run: Run, move: HeadMove, claim: Claim) -> None:
    actor, target = actors.of_user(move.by), move.target
    header = Header(kind=move.kind, step=target.next_step, next_step=target.next_step)
    notes = (move.words,) if move.words else ()
    words = _feedback(plan_of(run, target), move.words, move.by, claim.clock())
    behind = {name: _behind(move.writes[name], said) for name, said in words.items() if name in move.writes}
    writes = move.writes | words | behind
    saved = store.move_head(
        target, writes, claim=claim, header=header, status=Run.Status.QUEUED, notes=notes, actor=actor
    )
    path = RunPath.to(saved.id)
    for gate in Gate.objects.open().filter(run=run).exclude(checkpoint__in=list(path.asking())).order_by("pk"):
        closing.withdraw(gate, by=actor, reason=move.reason)
    hold_left_behind.take_up(run, path, by=actor)
    hold_left_behind.hold(run, path, by=actor)
    data = {"to": target.seq, "seq": saved.seq, "step": target.next_step} | ({"key": move.key} if move.key else {})
    event_log.record(
        "run.rewound" if move.kind == "rewind" else "run.edited",
        subject=f"run:{run.pk}", run=run, by=actor, data=data, text=move.words or None,
    )  # fmt: skip


def _feedback(plan: Plan, words: str, by: User, at: datetime) -> dict[str, Append]:
    """Return the words for the list that the agent's gates or validators use, if it has one."""
    if not words:
        return {}
    known = edited_states.known_agent(plan.pk)
    field = next((step.feedback for step in spec_of(plan).steps if step.feedback), "")
    if known is None or not field:
        return {}
    return append_words(known.agent, field, [Words(text=words, by=actors.of_user(by).name, at=at)])


def _behind(edited: Write, words: Append) -> list[Any]:
    """Put the words behind an edit's own value of their list: a mere append would go to the list as it was before."""
    return [*(edited if isinstance(edited, list) else []), *words.items]


def _head(claim: Claim) -> Any:
    if claim.head is None:
        raise RewindRefused("The run has no checkpoint yet.")
    return claim.head
