"""Signals: sending one to a run, and which of them a wait gets.

A signal is kept when it comes before the wait. A run's waits for one name get its signals in the order in which they
came, each once on the path to its head: what a branch had read that was left by a rewind is read again.
"""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.db.models import BinaryField, Count, Exists, F, Func, IntegerField, OuterRef, Q, Sum, Value

from agents.errors import FieldError
from agents.models import Signal, Wait
from agents.models.wait import WaitQuerySet
from agents.session.run_session import RunSession
from agents.work_errors import (
    RunEnded,
    SignalConflict,
    SignalRemoved,
    SignalsTooLarge,
    TooManySignals,
    WorkInvalid,
)
from approvals.schema import redact, validate
from checkpoints import crash_points
from checkpoints.access.permissions import START_RUN, may_in_team
from checkpoints.actors import Actor
from checkpoints.errors import ValueRefused
from checkpoints.events import event_log
from checkpoints.models import Event, Gap, Run
from checkpoints.runs.plans import spec_of
from checkpoints.store import named_files
from checkpoints.store.loading import CheckpointHeader
from checkpoints.values import digests
from checkpoints.values.canonical_json import decode_canonical, encode_canonical
from checkpoints.values.checkpoint_kinds import OUTPUT_LANDED

LARGEST = 1_000_000  # bytes of one value
MOST = 10_000  # signals of one run
MOST_BYTES = 64_000_000  # of their values
SIZE = Func("value", function="octet_length", output_field=IntegerField())
Execution = tuple[str, bytes, int]  # of a step: its name, the digest of its input, and how often it ran on that before


def send(run: Run, name: str, value: Any, *, key: str, by: Actor, owner: Actor | None = None) -> tuple[Signal, bool]:
    """Keep a signal to a live run and wake it if it waits for that; tell whether it is new.

    `owner`: the person who answers for the sender, where that is a program with a token. The same key with
    the same value is the same signal. Raises WorkInvalid, SignalConflict, RunEnded, TooManySignals.
    """
    content = _checked(run, name, value)
    with transaction.atomic():
        run.refresh_from_db(from_queryset=Run.objects.select_for_update(no_key=True).select_related("plan"))
        found = Signal.objects.filter(run=run, name=name, key=key).first()
        if found is not None:
            if bytes(found.value) != content:
                raise SignalConflict
            return found, False
        if (gone := _removed(run, name, value, key)) is not None:
            return gone, False
        if run.status not in Run.LIVE:
            raise RunEnded
        _check_room(run, content)
        crash_points.point("before_signal", run.next_step)
        made = Signal.objects.create(run=run, name=name, key=key, value=content, by=by.id, by_name=by.name)
        data = {"signal": made.pk, "name": name, "key": key}
        if owner is not None and owner.id != by.id:
            data["owner"] = owner.id
        if not veil(run, name):  # a digest of a short secret, such as a PIN, would tell it
            data["digest"] = digests.of_value(value).hex()
        event_log.record("signal.received", subject=f"run:{run.pk}", run=run, by=by, data=data)
        waited = Wait.objects.current(run)
        if waited is not None and (waited.kind, waited.name) == (Wait.Kind.SIGNAL, name):
            run.wake(by=by)
        crash_points.point("after_signal", run.next_step)
    return made, True


def may_send(run: Run, user: Any) -> bool:
    """Tell whether this person may send the run signals: whoever may start runs in its team."""
    return may_in_team(user, run.team_id, START_RUN)


def veil(run: Run, name: str) -> redact.Redaction:
    """Return the veil over the values of a signal; all of one is hidden that the run's plan does not declare."""
    return redact.veil_marks(spec_of(run.plan).signals.get(name, {"writeOnly": True}))


def first_after(run: Run, name: str, after: int, *, most: int, size: int) -> list[Signal]:
    """Return the run's next signals of a name, oldest first: one at least, and no more once they have `size` bytes."""
    found = Signal.objects.filter(run=run, name=name, pk__gt=after).order_by("pk")
    sizes = found.values_list("pk", SIZE)[:most]
    chosen, total = [], 0
    for number, bytes_of in sizes:
        if total >= size:
            break
        chosen.append(number)
        total += bytes_of
    return list(found.filter(pk__in=chosen)) if chosen else []


def take(session: RunSession, wait: Wait) -> bool:
    """Give the wait the oldest signal of its name that none on the path has had; tell whether there was one.

    In the caller's transaction, which holds the run's row.
    """
    read = Wait.objects.filter(run_id=session.run.pk, signal__name=wait.name)
    here = Q(base=wait.base, step=wait.step)
    sent = Signal.objects.filter(run_id=session.run.pk, name=wait.name)
    sent = sent.exclude(pk__in=_read_on_path(session, read.exclude(here)))
    wait.signal = sent.exclude(Exists(read.filter(here, signal=OuterRef("pk")))).order_by("pk").first()
    if wait.signal is None:
        return False
    wait.save()
    return True


def _read_on_path(session: RunSession, read: WaitQuerySet) -> list[int]:
    """Return the signals that these waits read in executions on the path."""
    columns = read.values_list("signal_id", "step", "input_digest", "occurrence")
    found = [(int(signal or 0), (step, bytes(digest), occurrence)) for signal, step, digest, occurrence in columns]
    executed = {execution_of(place) for place in (session.path if found else ())}
    return [signal for signal, execution in found if execution in executed]


def execution_of(place: CheckpointHeader) -> Execution | None:
    """Return the execution of a step whose output this checkpoint holds, as its waits name it."""
    if place.kind not in OUTPUT_LANDED or place.input_digest is None:
        return None
    return place.step, bytes(place.input_digest), place.occurrence


def _check_room(run: Run, content: bytes) -> None:
    """Raise TooManySignals or SignalsTooLarge where the run has no room for another signal."""
    kept = Signal.objects.filter(run=run).aggregate(signals=Count("pk"), bytes=Sum(SIZE, default=0))
    if kept["signals"] >= MOST:
        raise TooManySignals
    if kept["bytes"] + len(content) > MOST_BYTES:
        raise SignalsTooLarge


def _removed(run: Run, name: str, value: Any, key: str) -> Signal | None:
    """Return the signal of this key as its event tells of it, where retention has removed it. Raises SignalConflict.

    The database finds the event by the end of its canonical JSON: a run may have many thousands.
    """
    if not Gap.objects.filter(run=run).exists():
        return None
    named = Value(encode_canonical({"key": key, "name": name})[1:-1] + b',"signal":', output_field=BinaryField())
    place = Func(named, F("data"), function="position", arg_joiner=" IN ", output_field=IntegerField())
    received = Event.objects.sealable().filter(run_id=run.pk, kind="signal.received")
    event = received.alias(place=place).filter(place__gt=0).first()
    if event is None:
        return None
    told = decode_canonical(bytes(event.data))
    if "digest" not in told:
        raise SignalRemoved
    if told["digest"] != digests.of_value(value).hex():
        raise SignalConflict
    return Signal(pk=told["signal"], run=run, name=name, key=key, by=event.actor, by_name=event.actor_name, at=event.at)


def _checked(run: Run, name: str, value: Any) -> bytes:
    """Return the value as it is kept. Raises WorkInvalid."""
    known = spec_of(run.plan).signals
    if name not in known:
        told = f"it takes {', '.join(sorted(known))}" if known else "it takes none"
        raise WorkInvalid.at("", f"{run.plan} takes no signal {name}; {told}")
    try:
        content = encode_canonical(value)
    except ValueRefused as error:
        raise WorkInvalid.at(f"/value{error.pointer}", error.reason) from error
    if len(content) > LARGEST:
        told = f"has {len(content):,} bytes; {LARGEST:,} are the most"
        raise WorkInvalid.at("/value", told)
    if faults := validate.faults_of(known[name], value):
        raise WorkInvalid([FieldError(pointer=f"/value{pointer}", message=message) for pointer, message in faults])
    # The step that saves it is refused all the same, and would fail of what somebody sent.
    if foreign := named_files.foreign(value, team=run.team_id, lineage=run.lineage, state=None):
        raise WorkInvalid([FieldError(pointer=f"/value{at}", message=named_files.FOREIGN) for at in foreign])
    return content
