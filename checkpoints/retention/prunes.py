"""Runs a prune: the dry run in portions, the order of a person or of the night, then the removal line by line.

All progress is in its rows, so that any process can continue: after a kill, beside another worker, or in a slice of a
few seconds. A checkpoint is removed only if its line lists it and the rules, asked again, still allow it.

By a lock only one process at a time works on prunes: two would only compete for the same work.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta

from django.db import IntegrityError, connection, transaction
from django.db.models import F, Max
from django.db.models.functions import Now

from checkpoints.actors import Actor
from checkpoints.errors import CheckpointError
from checkpoints.events import event_log
from checkpoints.models import Prune, PruneLine, RetentionPolicy, Run
from checkpoints.postgresql.sql import run_sql
from checkpoints.values.canonical_json import encode_canonical

from . import policies, prune_line, reading, rules, stray_artifacts, unneeded_rows
from .prune_line import Stopped

LOOKED = 20  # runs whose lines one transaction writes
PASSED = 20_000  # runs that one statement scans at most; most concern no policy
AT_ONCE = 20  # lines read at once to be applied
SHOWN_DAYS = 7  # days for which a dry run can be applied
LOCK = 0x686F6C64_70727565  # a session's lock: released when the process dies


class PruneRefused(CheckpointError):
    """Nothing was removed."""


class PruneChanged(PruneRefused):
    """This dry run was applied or dropped meanwhile, or is not complete yet; nothing was removed. Look again."""


class PoliciesChanged(PruneRefused):
    """A retention policy was changed since this dry run; nothing was removed. Look again."""


class AlreadyPruning(PruneRefused):
    """Another prune is being applied; nothing was removed. Wait until it is done, then look again."""


class NotUnderWay(PruneRefused):
    """This prune is not under way any more; there is nothing to stop."""


def begin(*, by: Actor, nightly: bool = False) -> Prune:
    """Begin a dry run that has examined nothing yet; record the policies and the time that apply to it."""
    known = {agent: policy.pk for agent, policy in policies.current().items()}
    newest = Run.objects.aggregate(upto=Max("pk"))["upto"] or 0
    at = run_sql("SELECT clock_timestamp()", [])[0][0]
    return Prune.objects.create(at=at, by=by.id, by_name=by.name, nightly=nightly, policies=known, upto=newest)


def look(prune: Prune, *, seconds: float = 3600.0) -> bool:
    """Continue the dry run for `seconds`; tell whether it is complete. Two processes at once share the work."""
    known = policies.named(prune.policies)
    touched = policies.touched(known, prune.at)
    until = time.monotonic() + seconds
    while prune.status == Prune.Status.LOOKING and time.monotonic() < until:
        last = min(prune.cursor + PASSED, prune.upto)
        runs = Run.objects.filter(touched, pk__gt=prune.cursor, pk__lte=last).select_related("plan").order_by("pk")
        found = list(runs.only("pk", "lineage", "plan__agent")[:LOOKED])
        lines = [line for run in found if (line := _looked(prune, run, policies.policy_for(run.plan.agent, known)))]
        _note(prune, found[-1].pk if len(found) == LOOKED else last, len(found), lines)
        prune.refresh_from_db()
    return prune.status != Prune.Status.LOOKING


def _looked(prune: Prune, run: Run, policy: RetentionPolicy | None) -> PruneLine | None:
    """Make the line of a run; None if there is nothing to remove and no hold keeps anything alone."""
    if policy is None:
        return None
    history = reading.for_rules(run.pk)
    verdict = rules.decide(history, policy, prune.at)
    waits = [row for bundle in unneeded_rows.find(run, history, verdict.going) for row in bundle]
    if not verdict.going and not verdict.by_hold and not waits:
        return None
    gone = set(verdict.going)
    return PruneLine(
        prune=prune, run=run, agent=run.plan.agent, policy=policy, checkpoints=len(gone),
        size=sum(place.size + reading.ROW for place in history.places if place.seq in gone)
        + sum(row.size for row in waits),
        ranges=rules.stretches(verdict.going), kept=Counter(verdict.reasons.values()),
        held=[(hold, len(seqs)) for hold, seqs in verdict.by_hold.items()], signals_and_waits=len(waits),
        done=not gone and not waits,
    )  # fmt: skip


def _note(prune: Prune, last: int, runs: int, lines: list[PruneLine]) -> None:
    """Store the lines up to this run, unless another process has; the dry run is complete after the last run."""
    mine = Prune.objects.looking().filter(pk=prune.pk, cursor=prune.cursor)
    with transaction.atomic():
        if last == prune.cursor:
            mine.update(status=Prune.Status.SHOWN, digest=_digest(prune))
        elif mine.update(
            cursor=last,
            runs=F("runs") + runs,
            checkpoints=F("checkpoints") + sum(line.checkpoints for line in lines),
            size=F("size") + sum(line.size for line in lines),
        ):
            PruneLine.objects.bulk_create(lines)


def _digest(prune: Prune) -> bytes:
    """Compute the digest of the whole dry run: its time, its policies, and what to remove from each run."""
    made = hashlib.sha256(b"holdpoint prune\n" + encode_canonical([prune.at.isoformat(), prune.policies]))
    for line in prune.lines.order_by("run_id").values_list("run_id", "policy_id", "ranges").iterator():
        made.update(encode_canonical(list(line)))
    return made.digest()


def order(prune: Prune, *, seen: bytes, by: Actor) -> None:
    """Order the removal of what the dry run lists. Raises PruneChanged, PoliciesChanged and AlreadyPruning.

    `seen` is the digest of the dry run that the person saw.
    """
    if {agent: policy.pk for agent, policy in policies.current().items()} != prune.policies:
        raise PoliciesChanged
    shown = Prune.objects.filter(pk=prune.pk, status=Prune.Status.SHOWN, digest=seen)
    try:
        with transaction.atomic():
            if not shown.update(status=Prune.Status.APPLYING, started_at=Now(), by=by.id, by_name=by.name):
                raise PruneChanged
            prune.refresh_from_db()
            data = {
                "checkpoints": prune.checkpoints, "signals_and_waits": prune.signals_and_waits["shown"],
                "digest": seen.hex(), "policies": prune.policies,
            }  # fmt: skip
            event_log.record("retention.ordered", subject=f"prune:{prune.pk}", by=by, data=data)
    except IntegrityError as error:
        raise AlreadyPruning from error


def drop(prune: Prune) -> None:
    """Drop a dry run that was not applied, and delete its lines."""
    with transaction.atomic():
        open_ = (Prune.Status.LOOKING, Prune.Status.SHOWN)
        if Prune.objects.filter(pk=prune.pk, status__in=open_).update(status=Prune.Status.DROPPED):
            prune.lines.all().delete()


def drop_old() -> None:
    """Drop the dry runs that were not applied within `SHOWN_DAYS`: by then they are out of date."""
    for prune in Prune.objects.filter(status=Prune.Status.SHOWN, at__lt=Now() - timedelta(days=SHOWN_DAYS)):
        drop(prune)


def stop(prune: Prune, *, by: Actor) -> None:
    """Stop a prune that is under way; what it removed stays removed. Raises NotUnderWay.

    A portion removed at the same time updates the prune's row too: either before this, or it is rolled back.
    """
    with transaction.atomic():
        if not Prune.objects.under_way().filter(pk=prune.pk).update(status=Prune.Status.STOPPED, finished_at=Now()):
            raise NotUnderWay
        prune.refresh_from_db()
        data = {
            "checkpoints": prune.removed, "left": prune.kept_after_all, "freed": prune.freed,
            "signals_and_waits": prune.signals_and_waits["gone"],
        }  # fmt: skip
        event_log.record("retention.stopped", subject=f"prune:{prune.pk}", by=by, data=data)


def apply(prune: Prune, *, seconds: float = 3600.0) -> bool:
    """Continue removing for `seconds`; tell whether the prune is over. Several processes share the work."""
    until, after = time.monotonic() + seconds, 0
    with suppress(Stopped):
        while time.monotonic() < until:
            left = prune.lines.filter(done=False, run_id__gt=after).select_related("run", "policy").order_by("run_id")
            lines = list(left[:AT_ONCE])
            if not lines:
                break
            for line in lines:
                if time.monotonic() >= until:
                    break
                after = line.run_id
                prune_line.apply(prune, line, until)
    return _finish(prune)


def _finish(prune: Prune) -> bool:
    """End a prune that has no lines left; tell whether it has ended."""
    with transaction.atomic():
        mine = Prune.objects.under_way().filter(pk=prune.pk)
        if not prune.lines.filter(done=False).exists() and mine.update(status=Prune.Status.DONE, finished_at=Now()):
            prune.refresh_from_db()
            faults = list(prune.lines.exclude(fault="").order_by("run_id").values_list("run_id", flat=True)[:100])
            data = {
                "checkpoints": prune.removed, "signals_and_waits": prune.signals_and_waits["gone"],
                "freed": prune.freed, "not_verified": faults,
            }  # fmt: skip
            by = Actor(prune.by, prune.by_name)
            event_log.record("retention.finished", subject=f"prune:{prune.pk}", by=by, data=data)
    prune.refresh_from_db()
    return prune.status != Prune.Status.APPLYING


def remove_files(prune: Prune) -> None:
    """Remove unused artifacts. This reads all stored data, so pages leave it to the nightly prune."""
    freed = stray_artifacts.remove()
    Prune.objects.filter(pk=prune.pk).update(freed=F("freed") + freed)
    prune.refresh_from_db()


def go_on(*, seconds: float) -> bool:
    """Continue what was begun: dry runs, the orders of nightly ones, and prunes; tell whether more is left."""
    until = time.monotonic() + seconds
    for prune in Prune.objects.looking().order_by("pk"):
        look(prune, seconds=until - time.monotonic())
    for prune in Prune.objects.filter(nightly=True, status=Prune.Status.SHOWN).order_by("pk"):
        with suppress(AlreadyPruning):
            try:
                order(prune, seen=bytes(prune.digest), by=Actor(prune.by, prune.by_name))
            except (PoliciesChanged, PruneChanged):
                drop(prune)
    for prune in Prune.objects.under_way():
        if apply(prune, seconds=until - time.monotonic()) and prune.nightly:
            remove_files(prune)
    return Prune.objects.looking().exists() or Prune.objects.under_way().exists()


@contextmanager
def hold_prune_lock(*, wait: bool = False) -> Iterator[bool]:
    """Hold the lock on prunes inside the block; yield False if another process has it.

    `wait`: wait for the other process to finish its slice, no longer than a statement may take.
    """
    with connection.cursor() as cursor:
        if wait:
            cursor.execute("SELECT pg_advisory_lock(%s)", [LOCK])
            mine = True
        else:
            cursor.execute("SELECT pg_try_advisory_lock(%s)", [LOCK])
            mine = bool(cursor.fetchone()[0])
    try:
        yield mine
    finally:
        if mine and connection.connection is not None:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [LOCK])
