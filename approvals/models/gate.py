"""A gate: a stop at which people are asked.

Lock a gate's row before its run's, or two writers deadlock. Closing a gate wakes its run, so whoever ends a run locks
its open gate first.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import Group, User
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVector
from django.db import models
from django.db.models import Case, Count, F, Q, Value, When
from django.db.models.functions import Concat, Now
from django.utils.functional import cached_property

from approvals.cards.card import Card, card_of
from checkpoints import store
from checkpoints.access import permissions
from checkpoints.actors import Actor
from checkpoints.events import event_log
from checkpoints.postgresql.prepared_rows import type_numbers
from checkpoints.postgresql.sql import run_sql
from checkpoints.postgresql.text_search import person_term
from checkpoints.store import Snapshot

from .proposal import Proposal

WAYS = (  # see checkpoints.access.permissions
    ("team", permissions.VIEW_RUN),
    ("policy__reviewing__team", permissions.DECIDE_GATE),
    ("replaces__policy__reviewing__team", permissions.DECIDE_GATE),
    ("policy__people", permissions.NAMED),
    ("replaces__policy__people", permissions.NAMED),
    ("added__team", permissions.DECIDE_GATE),
    ("replaces__added__team", permissions.DECIDE_GATE),
    ("policy__lent__delegate", permissions.NAMED),
    ("added__lent__delegate", permissions.NAMED),
)
OPEN = Q(status="open")
URGENT = ("deadline", "opened_at", "id")
REVIEWERS = ("add_reviewers", "May add teams to the reviewers of a gate")
LATEST = (F("closed_at").desc(), F("id").desc())
LONGEST = ("opened_at", "id")
LARGEST = (F("amount_currency").desc(), F("amount_value").desc(), F("id").desc())
COSTLIEST = (F("delay_currency").desc(), F("delay_value").desc(), F("id").desc())
RISK_RANK = Case(*(When(risk=name, then=place) for place, name in enumerate(("critical", "high", "medium"))), default=3)
RISKIEST = (RISK_RANK, F("opened_at"), F("id"))


# Raw SQL for its RETURNING, so that the row need not be read again. $2 the status or null, $3 the proposal that must be
# current or null, $4 whether the deadline must have passed, $5 null or the version at which the undo window must have
# passed, $6 a word by which the gate is found from now on, or null. A decision that waits for the end of its undo
# window keeps the deadline away.
_MOVE = """
UPDATE approvals_gate SET version = version + 1, status = coalesce($2::text, status),
  closed_at = CASE WHEN $2::text IS NULL THEN closed_at ELSE statement_timestamp() END,
  settles_at = CASE WHEN $2::text IS NULL THEN settles_at END,
  settles_as = CASE WHEN $2::text IS NULL THEN settles_as ELSE '' END,
  ending = CASE WHEN $2::text IS NULL THEN ending ELSE '' END,
  terms = CASE WHEN strpos(' ' || terms || ' ', ' ' || $6::text || ' ') > 0 THEN terms
    ELSE concat_ws(' ', terms, $6::text) END
WHERE id = $1 AND status = 'open'
  AND ($3::int IS NULL OR proposal = $3::int AND (deadline IS NULL OR deadline > statement_timestamp()))
  AND (NOT $4::boolean OR deadline <= statement_timestamp() AND settles_at IS NULL)
  AND ($5::int IS NULL OR version = $5 AND settles_at <= statement_timestamp())
RETURNING status, version, proposal, deadline, closed_at, settles_at, settles_as, ending, awaits, risk
"""
_MOVED = (  # as it returns them
    "status", "version", "proposal", "deadline", "closed_at", "settles_at", "settles_as", "ending", "awaits", "risk",
)  # fmt: skip
# $2 whose approval is asked for, $3 and $4 the kind and the digest of the end that waits or "", $5 its undo window or
# null: the end that waits already goes on waiting as long as it did.
_PROJECT = """
UPDATE approvals_gate SET awaits = $2::bigint[], turn = turn + (awaits IS DISTINCT FROM $2::bigint[])::int,
  settles_as = $3::text, ending = $4::text, settles_at = CASE
  WHEN $5::interval IS NULL THEN NULL WHEN ending = $4::text THEN settles_at
  ELSE statement_timestamp() + $5::interval END
WHERE id = $1 RETURNING settles_at, turn
"""


class GateQuerySet(models.QuerySet["Gate"]):
    """Queries of gates."""

    def open(self) -> GateQuerySet:
        """Select the open ones."""
        return self.filter(status=Gate.Status.OPEN)

    def overdue(self) -> GateQuerySet:
        """Select open ones past their deadline, the longest overdue first."""
        return self.open().filter(deadline__lte=Now(), settles_at=None).order_by("deadline")

    def settled(self) -> GateQuerySet:
        """Select open ones whose undo window has passed, the longest first."""
        return self.open().filter(settles_at__lte=Now()).order_by("settles_at")

    def asking(self) -> list[tuple[str, str, int, int]]:
        """List team, policy, number of open gates and of overdue ones, for each policy with open gates."""
        late = Count("pk", filter=Q(deadline__lte=Now(), settles_at=None))
        counted = self.open().values("policy__team__name", "policy__name").annotate(number=Count("pk"), late=late)
        return list(counted.values_list("policy__team__name", "policy__name", "number", "late"))

    def visible_to(self, user: Any) -> GateQuerySet:
        """Select those of the person's teams, and those they review for others; by a token, those in its scope.

        A reviewer of a gate may see the gate that replaces it, and decide it only by its own policy.
        """
        return permissions.visible(self, user, WAYS, team="team_id", agent="run__plan__agent")


class Gate(models.Model):
    """One stop of one run. The runner opens it, people decide it, and the runner reads the outcome."""

    class Status(models.TextChoices):
        # open -> decided | expired | withdrawn
        OPEN = "open", "Open"
        DECIDED = "decided", "Decided"
        EXPIRED = "expired", "Expired"
        WITHDRAWN = "withdrawn", "Withdrawn"

    class Kind(models.TextChoices):
        REVIEW = "review", "Asks for a decision"
        RECOVERY = "recovery", "Asks how to go on after a fault"

    class Risk(models.TextChoices):
        LOW = "low", "Low"
        MEDIUM = "medium", "Medium"
        HIGH = "high", "High"
        CRITICAL = "critical", "Critical"

    run = models.ForeignKey("checkpoints.Run", on_delete=models.PROTECT, related_name="gates", db_index=False)
    team = models.ForeignKey(Group, on_delete=models.PROTECT, related_name="gates", db_index=False)
    policy = models.ForeignKey("approvals.Policy", on_delete=models.PROTECT, related_name="gates")
    checkpoint = models.UUIDField()  # the saved state it shows
    step = models.CharField(max_length=100)
    kind = models.CharField(max_length=8, choices=Kind.choices, default=Kind.REVIEW)
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.OPEN)
    version = models.IntegerField(default=1)  # raised by each change of the gate
    proposal = models.IntegerField(default=1)  # number of the current proposal
    title = models.CharField(max_length=200)
    terms = models.TextField(default="", db_default="")  # the words of its row, for the search
    risk = models.CharField(max_length=8, choices=Risk.choices, default=Risk.MEDIUM)
    # For the inbox's orders alone, read from the card: without a currency there is no amount.
    amount_currency = models.CharField(max_length=3, default="", db_default="", editable=False)
    amount_value = models.DecimalField(max_digits=24, decimal_places=6, default=0, db_default=0, editable=False)
    delay_currency = models.CharField(max_length=3, default="", db_default="", editable=False)
    delay_value = models.DecimalField(max_digits=24, decimal_places=6, default=0, db_default=0, editable=False)
    card = models.BinaryField()  # canonical JSON, see approvals.cards.card
    deadline = models.DateTimeField(null=True)
    # Ids of the teams, and negated ids of the people, who are asked now; empty: all of the policy's. For queues.
    awaits = ArrayField(models.BigIntegerField(), default=list, db_default=[])
    turn = models.IntegerField(default=0, db_default=0)  # how often others were asked; nobody is told of one twice
    # When the decision takes effect that its people may undo until then, and the kind of outcome that it will have.
    settles_at = models.DateTimeField(null=True)
    settles_as = models.CharField(max_length=10, default="", db_default="")
    ending = models.CharField(max_length=64, default="", db_default="")  # the digest of that end
    # The person who answers for the external program that asks; null where an agent of this server asks.
    asked_by = models.ForeignKey(User, null=True, on_delete=models.PROTECT, related_name="+")
    # Ids of the people who wrote some of what it asks about, see approvals.policy.separation; null: not looked up.
    authors = ArrayField(models.BigIntegerField(), null=True)
    likeness = ArrayField(models.CharField(max_length=32), default=list, db_default=[])  # see approvals.cards.likeness
    attempt = models.PositiveSmallIntegerField(default=1, db_default=1)  # 1 + how often the same was rejected before
    rejected_before = models.ForeignKey("self", null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    # What it asks for and what it is about, by which other open gates are found beside it; see approvals.gates.beside.
    request_digest = models.CharField(max_length=64, default="", db_default="", editable=False)
    resource = models.CharField(max_length=200, default="", db_default="", editable=False)
    opened_at = models.DateTimeField(db_default=Now())
    closed_at = models.DateTimeField(null=True)
    # The gates that it replaces, all of them: the same step of the same run, asked again, since they were withdrawn or
    # their approval did not hold.
    replaces: models.ManyToManyField[Gate, Any] = models.ManyToManyField(
        "self", symmetrical=False, related_name="replacements"
    )
    end: str | None = None  # see approvals.audit.evidence.with_end
    vouched = False  # new, or found as its last event tells; see approvals.audit.evidence
    wrote: list[int] | None = None  # see approvals.policy.separation.authors_of

    objects = GateQuerySet.as_manager()
    holder: Any = ()  # the live claim, see models.assignments.claim.holders; set by a reader
    added_ids: list[int] | None = None  # ids of the added teams; set by a reader that has them
    desk: Any = None  # see approvals.gates.page.desk; set by its page's reader
    reader_holds = False  # whether the live claim is the reader's; set by the list
    reader_decided = False  # whether the reader of a list decided on the current proposal; set by the list
    hooked = True  # whether any webhook may want to hear of it; set to False by a reader that has looked

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "checkpoint"], name="one_gate_per_checkpoint")]
        indexes = [
            # The orders in which approvals.gates.lists.queues reads, so that only rows that are shown are sorted.
            models.Index("team", *URGENT, name="gate_of_team", condition=OPEN),
            models.Index("policy", *URGENT, name="gate_of_policy", condition=OPEN),
            *(
                models.Index(owner, *order, name=f"gate_of_{owner}_{name}", condition=OPEN)
                for owner in ("team", "policy")
                for name, order in (("oldest", LONGEST), ("amount", LARGEST), ("risk", RISKIEST))
            ),
            models.Index("policy", *COSTLIEST, name="gate_of_policy_delay", condition=OPEN),
            # With what approvals.insights.backlog needs to say what the waiting has cost.
            models.Index("team", *COSTLIEST, name="gate_of_team_delay_since", condition=OPEN, include=("opened_at",)),
            models.Index("team", *LATEST, name="gate_of_team_closed", condition=~OPEN),
            models.Index("policy", *LATEST, name="gate_of_policy_closed", condition=~OPEN),
            models.Index(
                "team",
                "request_digest",
                "opened_at",
                "id",
                name="gate_of_request",
                condition=OPEN & ~Q(request_digest=""),
            ),
            models.Index(
                "team", "resource", "opened_at", "id", name="gate_of_resource", condition=OPEN & ~Q(resource="")
            ),
            models.Index(
                fields=["team", "resource", "-id"], name="gate_of_resource_closed", condition=~OPEN & ~Q(resource="")
            ),
            GinIndex(fields=["likeness"], name="gate_likeness"),
            models.Index("team", "opened_at", name="gate_of_team_opened"),
            GinIndex(SearchVector("terms", config="simple"), name="gate_terms"),
            models.Index("deadline", name="gate_overdue", condition=models.Q(status="open", deadline__isnull=False)),
            models.Index("settles_at", name="gate_settles", condition=Q(status="open", settles_at__isnull=False)),
        ]
        permissions = [
            ("decide_gate", "May decide gates"),
            ("reveal_secret", "May reveal secrets"),
            ("compare_people", "May see figures by person"),
            REVIEWERS,
        ]

    def __str__(self) -> str:
        return f"gate {self.pk}"

    @property
    def subject(self) -> str:
        """Return the name by which events and holds refer to it."""
        return f"gate:{self.pk}"

    @property
    def reviewer_ids(self) -> list[int]:
        """List the ids of the teams whose people may decide: the policy's, and those added to this gate."""
        return [*self.policy.reviewer_ids, *self.added_team_ids]

    @property
    def added_team_ids(self) -> list[int]:
        """List the ids of the teams that were added to this gate's reviewers."""
        if self.added_ids is None:
            self.added_ids = list(self.added.order_by("pk").values_list("team", flat=True))
        return self.added_ids

    @cached_property
    def reviewers(self) -> list[Group]:
        """List the teams of `reviewer_ids`. A reader that has them from its own statement sets them here."""
        return [*self.policy.reviewers, *(each.team for each in self.added.select_related("team").order_by("pk"))]

    @cached_property
    def asked(self) -> Card:
        """Return the card as the agent's step returned it, before any edit."""
        return card_of(bytes(self.card), external=lambda: self.run.plan.external)

    @cached_property
    def saved(self) -> Snapshot:
        """Return the saved state that it shows, verified; needs its run. Raises NotVerified."""
        return store.load_checkpoint(self.checkpoint)

    def standing(self) -> Proposal:
        """Return the current proposal."""
        return self.proposals.select_related("by").get(number=self.proposal)

    def replacement(self) -> Gate | None:
        """Find the newest gate that asks the same again, in the place of this one."""
        return self.replacements.order_by("-pk").first()

    def replaced(self, *, to: Any) -> list[int]:
        """List the gates that this one replaces and that the person may see, newest first."""
        seen = Gate.objects.visible_to(to).filter(replacements=self.pk)
        return list(seen.order_by("-pk").values_list("pk", flat=True))

    def move(
        self,
        *,
        proposal: int | None = None,
        status: str | None = None,
        due: bool = False,
        settled: int | None = None,
        by: int | None = None,
    ) -> bool:
        """Move the gate: the only writer of `status`, `proposal` and `version`. Joins the caller's transaction.

        With `proposal`, only where that is the current one and the deadline has not passed; with `status`, the gate
        closes. `due`: only past its deadline. `settled`: only past its undo window, and unchanged since this version.
        `by`: the id of a person by whom it is found from now on. Returns False where the gate is not open, or one of
        these does not hold. Afterwards this row is locked until the transaction ends, and this object is up to date.
        """
        word, expected = None if by is None else person_term(by), self.version + 1
        moved = run_sql(_MOVE, [self.pk, status, proposal, due, settled, word])
        if moved:
            for name, value in zip(_MOVED, moved[0], strict=True):
                setattr(self, name, value)
            if self.version != expected:
                self.added_ids = None  # it was moved since it was read: a team may have been added
        return bool(moved)

    def project(self, *, awaits: list[int], kind: str, ending: str, window: timedelta | None) -> None:
        """Write what is derived from the votes, where it differs: whose approval is asked for, and the end that waits.

        `kind`: of the outcome that the end will have; `window`: how long it may be undone. Only after `move`; called by
        approvals.gates.projection alone.
        """
        if (awaits, kind, ending) == (self.awaits, self.settles_as, self.ending):
            return
        [(self.settles_at, self.turn)] = run_sql(_PROJECT, [self.pk, type_numbers(awaits), kind, ending, window])
        self.awaits, self.settles_as, self.ending = awaits, kind, ending

    def found_by(self, person: int) -> None:
        """Let the gate be found by this person from now on. In the caller's transaction, which has locked the row."""
        word = person_term(person)
        if word not in self.terms.split():
            self.alter(terms=Concat("terms", Value(f" {word}")))

    def supersede(self, *, risk: str) -> int:
        """Raise the number of the current proposal, whose risk this is, and return it. Only after `move`."""
        self.alter(proposal=self.proposal + 1, risk=risk)
        return self.proposal

    def alter(self, **columns: Any) -> None:
        """Write these columns, which neither `move` nor `project` does, of the row that the transaction has locked."""
        Gate.objects.filter(pk=self.pk).update(**columns)
        for name, value in columns.items():
            if not hasattr(value, "resolve_expression"):
                setattr(self, name, value)

    def entry(
        self, kind: str, *, by: Actor, data: Mapping[str, Any] | None = None, text: str | None = None
    ) -> event_log.Entry:
        """Build an event of this gate as it is now; never with its title, which names people and stays in this row."""
        facts: dict[str, Any] = {
            "status": self.status, "step": self.step, "risk": self.risk, "reviewers": self.reviewer_ids,
            "policy": self.policy.name,
        }  # fmt: skip
        if self.policy.person_ids:
            facts["named"] = self.policy.person_ids
        return event_log.Entry(
            kind=kind,
            subject=self.subject,
            by=by,
            run=self.run,
            team_id=self.team_id,
            version=self.version,
            data={**facts, **(data or {})},
            text=text or None,
        )

    def say(self, kind: str, *, by: Actor, data: Mapping[str, Any] | None = None, text: str | None = None) -> None:
        """Append an event of this gate, in the caller's transaction."""
        event_log.append_events([self.entry(kind, by=by, data=data, text=text)])
