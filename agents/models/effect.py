"""The effect ledger: an intent row first, then its end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from django.contrib.postgres.fields import ArrayField
from django.db import models, transaction

from approvals.engine_rules import effects as rules
from checkpoints.actors import Actor
from checkpoints.audit import covered_rows
from checkpoints.audit.covered_rows import check_row, digest_of_row
from checkpoints.errors import Fenced
from checkpoints.events import event_log
from checkpoints.events.event_log import Entry
from checkpoints.events.event_proof import ROWS
from checkpoints.models import Hold
from checkpoints.postgresql.prepared_rows import OneOf, prepared_statement
from checkpoints.postgresql.sql import Statement, run_sql
from checkpoints.values.canonical_json import decode_canonical, encode_canonical
from checkpoints.values.characters import one_line

# The columns whose digest each event records: all about the outside world. Landings are checkpoints, which have digests
# of their own.
COLUMNS = (
    "run_id", "step", "key", "grant_id", "action", "base", "input_digest", "occurrence", "generation", "attempts",
    "irreversible", "undoes_id", "taken_from_id", "status", "result", "error", "version",
)  # fmt: skip

BEGUN = ("effect.intended", "effect.taken")  # the events of a new row


class EffectQuerySet(models.QuerySet["Effect"]):
    """Queries about effects."""

    def landed_for(self, action: str, *, step: str, runs: Iterable[int], at: Sequence[UUID]) -> bool:
        """Tell whether the action's result was written in one of these checkpoints of these runs."""
        mine = self.filter(run__in=list(runs), step=step, action=action)
        return bool(at) and mine.filter(landings__overlap=list(at)).exists()

    def newest(self, run_id: int, step: str, input_digest: bytes, occurrence: int) -> Effect | None:
        """Return the row of one execution of a step, in its latest generation."""
        return next(iter(_newest(run_id, step, input_digest, occurrence)), None)

    def covered(self, numbers: Sequence[int]) -> dict[int, dict[str, str]]:
        """Return the digests of these rows, by id, as their events record them."""
        return {row.pk: row.covered for row in _numbered(list(numbers))}

    def lock(self, run_id: int) -> None:
        """Lock the effects of a run; a transaction that locks its gates or the run too does this first."""
        list(self.filter(run=run_id).select_for_update().order_by("pk").values_list("pk"))


class Effect(models.Model):
    """One change of the outside world, at most once per key."""

    class Status(models.TextChoices):
        # intended -> done | failed | unknown; unknown -> done | failed | abandoned | intended (same key, retried)
        # failed -> intended (same key, not sent); done -> undone | kept; kept -> done (adopted again), undone
        # unknown -> kept (a person leaves it open); kept -> unknown (the run comes to what was left open)
        INTENDED = "intended", "Intended"
        DONE = "done", "Done"
        FAILED = "failed", "Failed: provably not done"
        UNKNOWN = "unknown", "Unknown: it may have happened"
        ABANDONED = "abandoned", "Unknown; done again on a person's order"
        UNDONE = "undone", "Undone"
        KEPT = "kept", "Kept, on an abandoned branch"

    run = models.ForeignKey("checkpoints.Run", on_delete=models.PROTECT, related_name="effects", db_index=False)
    step = models.CharField(max_length=100)
    key = models.CharField(max_length=64, unique=True)  # the idempotency key, hex
    grant = models.OneToOneField("approvals.Grant", null=True, on_delete=models.PROTECT, related_name="effect_row")
    action = models.CharField(max_length=100, default="", db_default="", blank=True)  # the one it performs, of several
    base = models.UUIDField()  # the checkpoint it was started from
    input_digest = models.BinaryField()
    occurrence = models.IntegerField(default=0)
    generation = models.IntegerField(default=0)
    attempts = models.IntegerField(default=1)
    token = models.BigIntegerField()  # of the worker that performed it
    irreversible = models.BooleanField(default=False)
    undoes = models.ForeignKey("self", null=True, on_delete=models.PROTECT, related_name="undos")  # a compensation's
    taken_from = models.ForeignKey("self", null=True, on_delete=models.PROTECT, related_name="+")  # another run's
    again = models.BooleanField(default=False, db_default=False)  # sent back to by a person: settled first
    landings = ArrayField(models.UUIDField(), default=list, db_default=[])  # the checkpoints that hold its result
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.INTENDED)
    result = models.BinaryField(default=b"null")  # canonical JSON of the output, see agents.definition.outputs
    error = models.CharField(max_length=500, default="", blank=True)
    intended_at = models.DateTimeField(auto_now_add=True)
    settled_at = models.DateTimeField(null=True)
    version = models.IntegerField(default=0, db_default=0)  # rises with every change of its status

    objects = EffectQuerySet.as_manager()

    class Meta:
        indexes = [models.Index("run", "step", name="effect_of_run")]

    def __str__(self) -> str:
        return f"{self.step} of run {self.run_id}: {self.status}"

    @property
    def returned(self) -> Any:
        """Return what the step returned."""
        return decode_canonical(bytes(self.result))

    @classmethod
    def taken_over(cls, origin: Effect, *, by: Actor, **columns: Any) -> Effect:
        """Create a row that takes over the result of another run's effect: done, and nothing was sent."""
        row = cls.objects.create(taken_from=origin, status=cls.Status.DONE, settled_at=origin.settled_at, **columns)
        data = {"effect": row.pk, "step": row.step, "key": row.key, "from": origin.pk, ROWS: row.covered}
        event_log.record("effect.taken", subject=row.subject, run=row.run, by=by, data=data)
        return row

    def retried(self, *, token: int, by: Actor) -> None:
        """Record that it is sent again under the same key. Raises Fenced where its state changed meanwhile."""
        came = (self.Status.INTENDED, self.Status.UNKNOWN, self.Status.FAILED)
        self._move(came, self.Status.INTENDED, by, token=token, error="")

    def done(self, result: Any, *, by: Actor, landing: UUID | None = None) -> None:
        """Record that it happened, with this result. Raises Fenced where its state changed meanwhile.

        `landing`: the checkpoint in which the caller then writes the result, as `landed` records it.
        """
        came = (self.Status.INTENDED, self.Status.UNKNOWN)
        self._move(came, self.Status.DONE, by, result=encode_canonical(result), error="", landing=landing)

    def failed(self, error: str, *, by: Actor) -> None:
        """Record that it provably did not happen. Raises Fenced where its state changed meanwhile."""
        came = (self.Status.INTENDED, self.Status.UNKNOWN)
        self._move(came, self.Status.FAILED, by, error=one_line(error, 500))

    def unknown(self, error: str, *, by: Actor) -> None:
        """Record that it may have happened. Raises Fenced where its state changed meanwhile."""
        self._move((self.Status.INTENDED,), self.Status.UNKNOWN, by, error=one_line(error, 500))

    def abandoned(self, *, by: Actor) -> None:
        """Record that a person ordered it redone although its end is unknown. Raises Fenced where its state changed."""
        self._move((self.Status.UNKNOWN,), self.Status.ABANDONED, by)

    def undone(self, *, by: Actor) -> None:
        """Record that it was undone. Raises Fenced where its state changed meanwhile."""
        self._settle((self.Status.DONE, self.Status.KEPT), self.Status.UNDONE, by)

    def kept(self, *, by: Actor) -> None:
        """Record that it is off the path and stays as it is. Raises Fenced where its state changed meanwhile."""
        self._settle((self.Status.DONE, self.Status.UNKNOWN), self.Status.KEPT, by)

    def doubted(self, *, by: Actor) -> None:
        """Record that a run reached an effect that a person had left open. Raises Fenced where its state changed."""
        self._move((self.Status.KEPT,), self.Status.UNKNOWN, by)

    def adopted(self, *, by: Actor) -> None:
        """Record that it is on the path, and drop an order to redo it. Raises Fenced where its state changed."""
        if self.status == self.Status.KEPT:
            self._move((self.Status.KEPT,), self.Status.DONE, by, again=False)
        elif self.again:
            type(self).objects.filter(pk=self.pk).update(again=False)
        Hold.objects.free(run=self.run_id, subject=self.subject, by=by)

    def landed(self, checkpoint: UUID) -> None:
        """Record that its result was written in this checkpoint, by its execution or by adoption."""
        run_sql(_LAND, [self.pk, checkpoint])
        self.landings.append(checkpoint)

    def order_again(self, *, by: Actor) -> None:
        """Record a person's order to redo it: it is settled before. Raises Fenced where its state changed."""
        if self.status == self.Status.KEPT:
            self._move((self.Status.KEPT,), self.Status.DONE, by, again=True)
        else:
            type(self).objects.filter(pk=self.pk, status=self.Status.DONE).update(again=True)
            self.again = True

    @property
    def left_open(self) -> bool:
        """Tell whether a person left it open: nobody knows whether it happened, and it has no result."""
        return rules.left_open(self.status, known=bytes(self.result) != b"null")

    @property
    def going(self) -> bool:
        """Tell whether it may have been undone: an undo was begun, and its end is unknown."""
        return any(undo.status in (self.Status.INTENDED, self.Status.UNKNOWN) for undo in self.undos.all())

    @property
    def taken(self) -> bool:
        """Tell whether its result was taken over from another run's effect."""
        return self.taken_from_id is not None

    @property
    def there(self) -> bool:
        """Tell whether it is done, and no undo of it is under way."""
        return rules.there(self)

    @property
    def adoptable(self) -> bool:
        """Tell whether an execution may adopt its result: it is done, not being undone and not ordered again."""
        return rules.adoptable(self)

    @property
    def subject(self) -> str:
        """Return its name in events and holds."""
        return f"effect:{self.pk}"

    @property
    def covered(self) -> dict[str, str]:
        """Return {name: digest} of this row, for the event of each change."""
        return {self.subject: digest_of_row(self, COLUMNS)}

    def verified(self) -> None:
        """Compare this row with its events. Called before anybody acts on it or an event records its digest.

        Raises NotVerified where it is not what they recorded.
        """
        check_row("effect", self.pk)

    def intended(self, *, by: Actor, beside: Sequence[Statement] = ()) -> None:
        """Record the event of a new intent, in the transaction that made the row, or `beside` the insert."""
        self._record("effect.intended", by, beside)

    def _settle(self, came_from: Iterable[str], to: str, by: Actor) -> None:
        self._move(came_from, to, by)
        Hold.objects.free(run=self.run_id, subject=self.subject, by=by)

    def _move(self, came_from: Iterable[str], to: str, by: Actor, **columns: Any) -> None:
        """Assign `status`, guarded by the token of the worker that performed it. Raises NotVerified as `verified`."""
        given = [columns.get(name) for name in ("token", "again", "result", "error", "landing")]
        with transaction.atomic(savepoint=False):
            moved = run_sql(_MOVE, [self.pk, list(came_from), to, self.token, *given, self.subject])
            if not moved:
                self.verified()
                raise Fenced(f"The effect {self.key[:8]} was settled elsewhere.")
            many = len(_NAMES)
            before = Effect.from_db(None, _NAMES, moved[0][many : 2 * many])
            covered_rows.check_locked(self.subject, before.covered, [row[2 * many :] for row in moved])
            vars(self).update(zip(_NAMES, moved[0], strict=False), _prefetched_objects_cache={})
            self._record(f"effect.{to}", by)

    def _record(self, kind: str, by: Actor, beside: Sequence[Statement] = ()) -> None:
        data = {"effect": self.pk, "step": self.step, "key": self.key, "attempts": self.attempts, ROWS: self.covered}
        data |= {"undoes": self.undoes_id} if self.undoes_id else {}
        told = Entry(kind=kind, subject=self.subject, run=self.run, by=by, version=self.version, data=data)
        event_log.append_events([told], extras=beside)


@prepared_statement
def _newest(run: Any, step: Any, digest: Any, occurrence: Any) -> models.QuerySet[Effect]:
    rows = Effect.objects.filter(run=run, undoes__isnull=True, step=step, input_digest=digest, occurrence=occurrence)
    return rows.select_related("run").order_by("-generation")[:1]


@prepared_statement
def _numbered(numbers: Any) -> models.QuerySet[Effect]:
    return Effect.objects.filter(OneOf(models.F("pk"), numbers))


_NAMES = [field.attname for field in Effect._meta.concrete_fields]
_BEFORE = ", ".join(f"before.{field.column}" for field in Effect._meta.concrete_fields)
# Gives the row after the move and before it, and its events: it is checked while nobody else can move it.
_MOVE = f"""
WITH before AS (SELECT * FROM agents_effect WHERE id = $1 FOR NO KEY UPDATE), moved AS (
  UPDATE agents_effect SET status = $3::text, version = version + 1, token = coalesce($5, token),
    again = coalesce($6, again), result = coalesce($7, result), error = coalesce($8, error),
    landings = CASE WHEN $9::uuid IS NULL THEN landings ELSE array_append(landings, $9) END,
    attempts = attempts + ($3::text = 'intended')::int,
    intended_at = CASE WHEN $3::text = 'intended' THEN statement_timestamp() ELSE intended_at END,
    settled_at = CASE WHEN $3::text IN ('intended', 'unknown') THEN NULL
      WHEN status = 'kept' AND $3::text = 'done' THEN settled_at ELSE statement_timestamp() END
  WHERE id = (SELECT id FROM before) AND status = ANY($2) AND token = $4 RETURNING *)
SELECT {_BEFORE.replace("before.", "moved.")}, {_BEFORE}, told.id, told.kind, told.subject, told.version, told.data
FROM moved CROSS JOIN before
LEFT JOIN checkpoints_event told ON told.subject = $10 AND NOT (told.kind = 'checkpoint.saved')
ORDER BY told.version, told.id
"""  # noqa: S608 - constants
_LAND = "UPDATE agents_effect SET landings = array_append(landings, $2) WHERE id = $1"
