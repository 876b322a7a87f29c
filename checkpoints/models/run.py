"""A run: one execution of an agent, a tree of checkpoints with one head; and the plan that it follows.

Whoever may write a run holds its lease, by the database's clock, and its fencing token; the statement
that writes a checkpoint checks the token. `head`, `token`, `lease_until` and `attempts` carry no index,
so that the update that goes with every checkpoint stays a heap-only one.

A plan is one agent version's steps as data, so that pages and reviewers do not need the agent's code.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple, Self

from django.conf import settings
from django.contrib.auth.models import Group
from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVector
from django.db import models, transaction
from django.db.models import Q
from django.db.models.functions import Now
from django.dispatch import Signal

from checkpoints.access import permissions
from checkpoints.actors import Actor
from checkpoints.events import event_log
from checkpoints.postgresql.sql import make_storable, run_sql
from checkpoints.values.canonical_json import encode_canonical

from . import run_status
from .run_status import move_runs

# The doorbell: a run has work again. Sent after commit with `run_id`, its `plan` and its `priority`; it carries no
# authority. A receiver may enqueue the run; the sweeper finds what a crash dropped.
run_needs_attention = Signal()
WAYS = (("team", permissions.VIEW_RUN),)  # see checkpoints.access.permissions
COUNTED = 5_000  # runs of a status
PRIORITIES = range(10)  # of runs, the most urgent first
NORMAL = 5  # the priority of runs for which none is given
# Each arm has a limit of its own, so that many queued or external runs hide none that is due here. Waiting runs are
# read by team, as their index has them. A due timer waits for the sweeper, which queues its run.
_TO_SWEEP = f"""
  (SELECT p.agent, r.status, CASE WHEN p.external THEN NULL ELSE {{due}} END AS due
   FROM checkpoints_run r JOIN checkpoints_plan p ON p.id = r.plan_id
   WHERE r.status = '{{status}}' AND p.external = {{external}} ORDER BY r.id LIMIT {COUNTED})
  UNION ALL"""  # noqa: S608 - a constant
_QUEUED = {"status": "queued", "due": "coalesce(r.wake_at, r.created_at)"}
_RUNNING = {"status": "running", "due": "r.lease_until"}
_ARMS = "".join(_TO_SWEEP.format(**arm, external=outside) for arm in (_QUEUED, _RUNNING) for outside in (False, True))
_FIGURES = f"""
WITH live AS MATERIALIZED ({_ARMS}
  (SELECT p.agent, 'waiting', NULL FROM auth_group team CROSS JOIN LATERAL (
     SELECT plan_id FROM checkpoints_run WHERE team_id = team.id AND status = 'waiting' LIMIT {COUNTED}) waiting
   JOIN checkpoints_plan p ON p.id = waiting.plan_id LIMIT {COUNTED})
  UNION ALL
  (SELECT p.agent, '', r.wake_at FROM checkpoints_run r JOIN checkpoints_plan p ON p.id = r.plan_id
   WHERE r.status = 'waiting' AND r.wake_at IS NOT NULL AND NOT p.external ORDER BY r.wake_at LIMIT 1))
SELECT agent, status, count(*), max(extract(epoch FROM statement_timestamp() - due))::float8
FROM live GROUP BY 1, 2 ORDER BY 1, 2
"""  # noqa: S608 - a constant


class WokenRun(NamedTuple):
    """A run whose timer was due, and what its doorbell needs."""

    id: int
    token: int
    plan: int
    priority: int


class RunQuerySet(models.QuerySet["Run"]):
    """Queries on runs."""

    def visible_to(self, user: Any) -> RunQuerySet:
        """Return runs of the teams in which this person may view runs; by a token for one agent, that agent's."""
        return permissions.visible(self, user, WAYS, team="team_id", agent="plan__agent")

    def live(self) -> RunQuerySet:
        """Return runs that have not ended."""
        return self.filter(status__in=Run.LIVE)

    def figures_by_agent(self) -> list[tuple[str, dict[str, int], float]]:
        """Count, for each agent with live runs, its runs by status; return also the longest time overdue, in seconds.

        At most COUNTED runs of a status are counted for agents here, and as many for external ones, never overdue.
        """
        found: dict[str, tuple[dict[str, int], float]] = {}
        for agent, status, number, due in run_sql(_FIGURES, []):
            counts, longest = found.get(agent, ({}, 0.0))
            found[agent] = counts | ({status: number} if status else {}), max(longest, due or 0.0)
        return [(agent, counts, longest) for agent, (counts, longest) in found.items()]

    def overdue(self) -> RunQuerySet:
        """Return the live runs past their deadline that are not on their way to an end, by the database's clock."""
        return self.live().filter(deadline__lte=Now(), ending="").order_by("deadline")

    def of_lineage(self, lineage: int) -> RunQuerySet:
        """Return the run at the root of the lineage and all of its forks, by the index of forks."""
        return self.filter(Q(pk=lineage) | Q(lineage=lineage, forked_from__isnull=False))

    def due(self, now: datetime | None = None) -> RunQuerySet:
        """Return the runs that need a worker: queued and due, with an expired lease, or with a due timer.

        By the database's clock unless `now` is given; oldest first. The sweeper locks and limits them.
        """
        at = now or Now()
        return self.filter(
            Q(status=Run.Status.QUEUED) & (Q(wake_at__isnull=True) | Q(wake_at__lte=at))
            | Q(status=Run.Status.RUNNING, lease_until__lt=at)
            | Q(status=Run.Status.WAITING, wake_at__lte=at)
        ).order_by("pk")

    def wake_due(self, most: int, by: Actor) -> list[WokenRun]:
        """Queue up to `most` of all waiting runs whose timer is due, and return them.

        The caller rings for them. A run that somebody else is about to move is left alone.
        """
        return [WokenRun(*row) for row in move_runs(run_status.WAKE_DUE, [most, by.id, by.name])]


class Run(models.Model):
    """One execution of an agent."""

    class Status(models.TextChoices):
        # queued -> running; running -> waiting | queued | completed | failed | cancelled;
        # waiting -> queued; queued, waiting -> cancelled; any -> running where a person moves the run
        QUEUED = "queued", "Queued"
        RUNNING = "running", "Running"
        WAITING = "waiting", "Waiting"
        COMPLETED = "completed", "Completed"
        FAILED = "failed", "Failed"
        CANCELLED = "cancelled", "Cancelled"

    LIVE = (Status.QUEUED, Status.RUNNING, Status.WAITING)

    lineage = models.BigIntegerField()  # the id of the run at the root of the forks
    # Indexes below begin with these columns.
    plan = models.ForeignKey("checkpoints.Plan", on_delete=models.PROTECT, db_index=False, related_name="runs")
    team = models.ForeignKey(Group, on_delete=models.PROTECT, db_index=False, related_name="runs")
    title = models.CharField(max_length=200)
    status = models.CharField(max_length=12, choices=Status.choices, default=Status.QUEUED)
    version = models.IntegerField(default=0)
    head = models.UUIDField(null=True)
    seq = models.IntegerField(default=0)  # of the newest checkpoint, on whatever branch
    next_step = models.CharField(max_length=100, default="")
    token = models.BigIntegerField(default=0)
    lease_until = models.DateTimeField(null=True)
    worker = models.CharField(max_length=120, default="", blank=True)
    attempts = models.SmallIntegerField(default=0)  # starts of `next_step` since the head was saved
    wake_at = models.DateTimeField(null=True)
    reason = models.CharField(max_length=300, default="", blank=True)  # why it ended, or does not go on
    frozen_at = models.DateTimeField(null=True)  # when stored data that it depends on failed verification
    started_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, db_index=False, related_name="+"
    )
    started_as = models.CharField(max_length=120)  # an actor: "user:7", "agent:refunds", "system"
    key = models.CharField(max_length=200, null=True, unique=True)  # noqa: DJ001 - absent differs from empty
    thread = models.CharField(
        max_length=200, default="", db_default="", blank=True
    )  # runs of one conversation share it
    forked_from = models.UUIDField(null=True)
    parent = models.ForeignKey(  # whose step started it
        "self", null=True, blank=True, on_delete=models.PROTECT, db_index=False, related_name="children"
    )
    awaited = models.IntegerField(default=0, db_default=0)  # how many of its children have to end before it goes on
    environment = models.BinaryField(default=b"{}", db_default=b"{}")  # {"config": {…}, "libraries": {name: version}}
    halt = models.BooleanField(default=False, db_default=False)  # a person asks its worker to stop at the next step
    settling = models.BooleanField(default=False, db_default=False)  # it settles the effects it left behind first
    ending = models.CharField(max_length=12, default="", db_default="", blank=True)  # its status then; "": it goes on
    ending_reason = models.CharField(max_length=300, default="", db_default="", blank=True)
    ending_by = models.CharField(max_length=120, default="", db_default="", blank=True)  # an actor, and their name
    ending_by_name = models.CharField(max_length=150, default="", db_default="", blank=True)
    priority = models.SmallIntegerField(default=NORMAL, db_default=NORMAL)  # from 0, the most urgent, to 9
    deadline = models.DateTimeField(null=True)  # if it still lives then, it is cancelled
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True)

    objects = RunQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index("id", name="run_to_sweep", condition=Q(status__in=["queued", "running"])),
            models.Index(
                fields=["plan", "status", "priority", "id"],
                name="run_to_sweep_by_priority",
                condition=Q(status__in=["queued", "running"]),
            ),
            models.Index(
                "deadline",
                name="run_deadline",
                condition=Q(status__in=["queued", "running", "waiting"], deadline__isnull=False),
            ),
            models.Index("wake_at", name="run_timer", condition=Q(status="waiting", wake_at__isnull=False)),
            # The filters of the list of runs, each in the list's order.
            models.Index(fields=["team", "-id"], name="run_of_team"),
            models.Index(fields=["team", "status", "-id"], name="run_of_team_status"),
            models.Index(fields=["plan", "team", "-id"], name="run_of_plan"),
            models.Index(fields=["started_by", "team", "-id"], name="run_of_starter"),
            models.Index(fields=["team", "created_at"], name="run_of_team_day"),
            GinIndex(SearchVector("title", config="simple"), name="run_title"),
            models.Index(fields=["team", "thread", "-id"], name="run_of_thread", condition=~Q(thread="")),
            models.Index("lineage", name="run_of_lineage", condition=Q(forked_from__isnull=False)),  # forks alone
            models.Index(  # of those that live: all that a run started are found by the records of agents
                fields=["parent", "status", "id"],
                name="run_of_parent",
                condition=Q(status__in=["queued", "running", "waiting"], parent__isnull=False),
            ),
            models.Index("id", name="run_awaiting", condition=Q(status="waiting", awaited__gt=0)),
        ]
        permissions = [
            ("start_run", "May start runs"),
            ("rewind_run", "May rewind, fork, edit and cancel runs"),
        ]

    def __str__(self) -> str:
        return f"R-{self.pk}"

    @property
    def frozen(self) -> bool:
        """Tell whether the run failed because stored data does not verify."""
        return self.status == Run.Status.FAILED and self.frozen_at is not None

    def begin_waiting(self, reason: str) -> None:
        """Set a run that is not inserted yet to what it would be once started, claimed and released to wait."""
        self.status, self.version, self.token, self.attempts = Run.Status.WAITING, 2, 1, 1
        self.reason = make_storable(reason[:300])

    def begin_held(self, reason: str) -> None:
        """Set a run that is not inserted yet to one that waits for its turn."""
        self.status, self.version, self.reason = Run.Status.WAITING, 1, make_storable(reason[:300])

    def wake(self, by: Actor) -> bool:
        """Queue a waiting run and wake a worker after commit; False where it was not waiting. Safe to repeat."""
        # Registered first, so that the worker is woken before the pages.
        values = {"run_id": self.pk, "plan": self.plan, "priority": self.priority}
        transaction.on_commit(partial(run_needs_attention.send, sender=Run, **values))
        woken = move_runs(run_status.WAKE, [self.pk, by.id, by.name])
        if woken:
            self.status, ((self.wake_at, self.version),) = Run.Status.QUEUED, woken
        return bool(woken)

    def hurry(self) -> None:
        """Make a queued run due at once, skipping its pause."""
        Run.objects.filter(pk=self.pk, status=Run.Status.QUEUED).update(wake_at=None)

    def cancel(self, by: Actor, reason: str = "") -> bool:
        """End a live run. A new token fences a worker that runs it. False if it had ended."""
        words = make_storable(reason[:300])
        data = encode_canonical(event_log.with_request({}))
        ended = move_runs(run_status.CANCEL, [self.pk, words, by.id, by.name, data])
        if ended:
            self.refresh_from_db()
        return bool(ended)

    def end_later(self, ending: str, reason: str, *, by: Actor) -> None:
        """Let the run settle its effects first, and record how, why and by whose order it ends then; "": it goes on.

        Call it, like `settled`, in the transaction of the holder of the run's token.
        """
        values = {"ending_reason": make_storable(reason[:300]), "ending_by": by.id, "ending_by_name": by.name}
        self._note(settling=True, ending=ending, **values)

    def settled(self) -> None:
        """Record that the run has no effects to settle any more, or leaves them as they are."""
        self._note(settling=False, ending="", ending_reason="", ending_by="", ending_by_name="")

    def _note(self, **columns: bool | str) -> None:
        vars(self).update(columns)
        Run.objects.filter(pk=self.pk).update(**columns)

    def settle_first(self, ending: str, reason: str, *, by: Actor, key: str = "") -> None:
        """Record as `end_later` does, with the event of a person's order; `key` identifies the form that was sent."""
        self.end_later(ending, reason, by=by)
        data = {"key": key} if key else {}
        event_log.record("run.settling", subject=f"run:{self.pk}", by=by, run=self, data=data)


IMPLIED = re.compile("posted-[0-9a-f]{12}")


def name_plan(agent: str, version: str) -> str:
    """Name the agent, and its version if a person gave it one.

    A posted gate implies a plan whose version is a digest, which is left out.
    """
    return agent if IMPLIED.fullmatch(version) else f"{agent} {version}"


class PlanQuerySet(models.QuerySet["Plan"]):
    """Queries about plans."""

    def of_teams(self, teams: Collection[int]) -> Self:
        """Return the plans that these teams have runs of.

        One run of each plan is looked up in an index, whose order the subquery requests: as a join, or without that
        order, the planner would read every run of the teams.
        """
        runs = Run.objects.filter(plan=models.OuterRef("pk"), team__in=list(teams))
        some = runs.order_by("plan", "team", "-pk").values("pk")[:1]
        return self.alias(some=models.Subquery(some)).filter(some__isnull=False)


class Plan(models.Model):
    """The steps of one agent version. Changed code under the same version is another row; changed titles are not."""

    agent = models.CharField(max_length=100)
    version = models.CharField(max_length=40)
    digest = models.BinaryField()  # SHA-256 over `body`, without titles unless `external`
    body = models.BinaryField()  # canonical JSON, see checkpoints.runs.plans
    external = models.BooleanField(default=False, db_default=False)  # the code is elsewhere: no worker here runs it
    created_at = models.DateTimeField(auto_now_add=True)

    objects = PlanQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["agent", "version", "digest", "external"], name="plan_is_stored_once"),
        ]

    def __str__(self) -> str:
        return f"{self.agent} {self.version}"

    @property
    def named(self) -> str:
        """Name the agent and its version for people."""
        return name_plan(self.agent, self.version)
