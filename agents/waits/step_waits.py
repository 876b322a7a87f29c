"""The waits of one execution of a step.

A step that has to wait ends here, by `Suspended`, and the runner releases the run together with the wait's row. Once
the wait is over the step starts again from its beginning, and a wait that is over returns at once: so what comes before
it runs again, unless it is kept by `once`. A wait belongs to the checkpoint from which the step was sent on, as a
result of `once` does, and is known by its kind, its name and its number there.

It also releases a run whose step waits, and ends a wait before its time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, NoReturn
from uuid import UUID

from django.db import transaction
from django.utils.functional import cached_property
from pydantic import TypeAdapter, ValidationError

from agents.definition import fields
from agents.errors import AgentError, RewindRefused, SignalTimeout, StepFailed, Suspended
from agents.models import Wait
from agents.session import gates_beside
from agents.session.run_session import RunSession
from checkpoints import crash_points
from checkpoints.actors import SYSTEM, Actor
from checkpoints.events import event_log
from checkpoints.models import Run
from checkpoints.runs.plans import StepSpec
from checkpoints.values.characters import one_line

from . import signals

Kind = Wait.Kind
NAME = 100  # characters
MOST = 10_000  # waits of one execution: each time the step starts, it goes through all that are over


class StepWaits:
    """The waits of one execution. `base` returns the checkpoint from which the step was sent on."""

    def __init__(self, session: RunSession, spec: StepSpec, base: Callable[[], UUID]) -> None:
        self.session = session
        self.spec = spec
        self.suspended: Suspended | None = None
        self._base = base
        self._numbers: Counter[tuple[str, str]] = Counter()

    def sleep_until(self, moment: datetime | timedelta, name: str) -> None:
        """Return once it is `moment`, or a person ended the wait. Raises Suspended before that, and AgentError."""
        if isinstance(moment, timedelta):
            moment = self.session.claim.clock() + moment
        if not isinstance(moment, datetime) or moment.tzinfo is None:
            raise AgentError(
                "sleep_until() takes a time with its zone, such as datetime(2027, 1, 1, tzinfo=UTC), or a timedelta; "
                f"got {moment!r}."
            )
        wait = self._next(Kind.TIMER, name, moment.astimezone(UTC))
        if not wait.over(self.session.claim.clock()):
            self._suspend(wait)

    def signal(self, name: str, timeout: timedelta | None) -> Any:
        """Return the value of the run's next signal of this name, typed as the agent declares it.

        Raises Suspended while there is none, SignalTimeout once `timeout` has passed, StepFailed and AgentError.
        """
        kind = self.session.agent.signals.get(name, ...)
        if kind is ...:
            told = ", ".join(self.session.agent.signals) or "none"
            raise AgentError(f"wait_for_signal({name!r}): the agent declares no such signal in `signals`, but {told}.")
        due = None if timeout is None else self.session.claim.clock() + timeout
        wait = self._next(Kind.SIGNAL, name, due)
        if not wait.ended or (bytes(wait.input_digest), wait.occurrence) != self._execution:
            with transaction.atomic():
                self.session.hold_token()
                self._end(wait)
        if wait.signal is not None:
            return _typed(kind, name, wait.signal.content)
        if wait.ended_by:
            raise SignalTimeout(f"No signal {name} came in time.")
        self._suspend(wait)

    def _end(self, wait: Wait) -> None:
        """Save that the wait has ended, if it has: so the step finds the same end however often it starts.

        Its signal counts as read by the execution that lands, which in a new version may be another than began to wait.
        """
        wait.input_digest, wait.occurrence = self._execution
        if not wait.ended and not signals.take(self.session, wait) and wait.over(self.session.claim.clock()):
            wait.ended_by = SYSTEM.id
        if wait.ended:
            wait.save()

    @cached_property
    def _execution(self) -> tuple[bytes, int]:
        """Return the digest of the step's input, and how often it ran on that before."""
        digest = self.session.input_digest(self.spec)
        return digest, self.session.path.occurrences(self.spec.name, digest)

    def _next(self, kind: Kind, name: str, due: datetime | None) -> Wait:
        """Return the row of the next wait of this kind and name: the one that is kept, or a new one, not saved yet."""
        if self.spec.kind != "step":
            raise AgentError(f"{self.spec.name} is a {self.spec.kind}, which cannot wait; let a step before it wait.")
        if not isinstance(name, str) or not name or name != one_line(name, NAME):
            raise AgentError(f"A wait has a name of 1 to {NAME} printable characters; it got {name!r}.")
        if self._numbers.total() >= MOST:
            raise AgentError(
                f"{self.spec.name} has waited {MOST:,} times in one execution, the most. Let it return before that and "
                "jump to itself to go on: each execution counts anew."
            )
        self._numbers[kind, name] += 1
        number, (digest, occurrence) = self._numbers[kind, name], self._execution
        return self._kept.pop((kind, name, number), None) or Wait(
            run_id=self.session.run.pk, base=self._base(), step=self.spec.name, kind=kind, name=name, number=number,
            head=self.session.snapshot.id, input_digest=digest, occurrence=occurrence, due=due,
        )  # fmt: skip

    @cached_property
    def _kept(self) -> dict[tuple[str, str, int], Wait]:
        """Return the waits of the step's earlier starts, by kind, name and number, as far as it has not met them yet.

        Only the holder of the token adds one, and a person ends one only while the run waits.
        """
        rows = Wait.objects.filter(run=self.session.run, base=self._base(), step=self.spec.name)
        return {(each.kind, each.name, each.number): each for each in rows.select_related("signal")}

    def _suspend(self, wait: Wait) -> NoReturn:
        self.suspended = Suspended(wait)
        raise self.suspended


def _typed(kind: Any, name: str, value: Any) -> Any:
    try:
        return TypeAdapter(kind).validate_python(value) if kind is not None else value
    except ValidationError as error:
        wrong = "; ".join(f"{each['pointer'] or '/'}: {each['message']}" for each in fields.errors_of(error))
        raise StepFailed(f"The signal {name} does not fit its type: {wrong}") from error


def suspend(session: RunSession, spec: StepSpec, wait: Wait) -> None:
    """Release the run until the wait is over, and keep the wait, in one transaction. Raises Fenced.

    Under the run's row, which whoever sends a signal locks too: a signal that came meanwhile is found here, and one
    that comes later finds the run waiting. A wait is no failed attempt.
    """
    crash_points.point("before_wait", spec.name)
    with gates_beside.falling_asleep(session.run, session.asking), transaction.atomic():
        session.hold_token()
        wait.head = session.snapshot.id
        wait.save()
        came = wait.kind == Wait.Kind.SIGNAL and signals.take(session, wait)
        session.wait("" if came else words_of(wait), wake_at=None if came else wait.due)
    crash_points.point("after_wait", spec.name)


def words_of(wait: Wait) -> str:
    """Say what a run waits for."""
    if wait.kind == Wait.Kind.TIMER:
        return f"Waits until {wait.due:%Y-%m-%d %H:%M:%S} UTC"
    return f"Waits for the signal {wait.name}"


def wake_now(run: Run, *, by: Actor) -> None:
    """End the timer that the run waits for, by a person's order. Raises RewindRefused if it waits for none."""
    with transaction.atomic():
        run.refresh_from_db(from_queryset=Run.objects.select_for_update(no_key=True).select_related("plan"))
        wait = Wait.objects.current(run)
        if wait is None or wait.kind != Wait.Kind.TIMER:
            raise RewindRefused("This run is not waiting for a time.")
        crash_points.point("before_wake", wait.step)
        Wait.objects.filter(pk=wait.pk).update(ended_by=by.id)
        data = {"step": wait.step, "name": wait.name}
        event_log.record("timer.skipped", subject=f"run:{run.pk}", run=run, by=by, data=data)
        run.wake(by=by)
        crash_points.point("after_wake", wait.step)
