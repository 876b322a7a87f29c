"""Runs: the list, one, the runs that its steps started, and what it did in the outside world."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any, ClassVar

from django.db.models import Count, Prefetch
from django.http import HttpRequest, HttpResponse
from ninja import Query, Router
from pydantic import BeforeValidator, Field

from agents.access import run_or_404
from agents.api.protocol.answers import Page, Paging, answer_json
from agents.api.protocol.auth import require_scope
from agents.api.protocol.schemas import ApiSchema, RunId, one_of, optional_one_of, or_null, refuse_unknown
from agents.effects.ledger import LedgerRow, off_course, rows_of
from agents.models import ChildLink, Effect, TokenScope
from agents.runs.course import read_course
from agents.runs.query import starter_name
from agents.session import child_runs
from agents.session.run_path import RunPath
from approvals.models import Gate
from approvals.views.access import reader_of
from checkpoints.models import Run
from checkpoints.values.characters import one_line

CHILD_GATES = Prefetch("run__gates", Gate.objects.open().order_by("pk"), to_attr="open_gates")
KEY = "3f0a1b2c4d5e6f708192a3b4c5d6e75c0e1f2a3b4d5e6f708192a3b4c5d6e7ff"
OPEN_GATES = Prefetch("gates", Gate.objects.open().order_by("pk"), to_attr="open_gates")


def count_children(runs: Iterable[Run]) -> list[Any]:
    """Return these runs, each with its children counted by status as `child_counts`."""
    found: list[Any] = list(runs)
    counted: dict[int, dict[str, int]] = defaultdict(dict)
    rows = ChildLink.objects.filter(parent__in=[run.pk for run in found]).order_by()
    for parent, status, number in rows.values_list("parent_id", "run__status").annotate(Count("pk")):
        counted[parent][status] = number
    for run in found:
        run.child_counts = counted[run.pk]
    return found


router = Router(tags=["runs"], auth=require_scope(TokenScope.READ))


class RunSummary(ApiSchema):
    """One execution of an agent."""

    example: ClassVar = {
        "id": 7, "title": "Refund A-1", "agent": "refunds", "agent_version": "1", "team": "Support",
        "status": "waiting", "reason": "", "ending": None, "next_step": "review", "seq": 3, "thread": "chat-1207",
        "started_by": "Ann Okafor", "created_at": "2026-03-02T09:15:04.120931Z",
        "deadline": "2026-03-09T09:15:04.120931Z", "priority": 5, "finished_at": None, "gates": [42], "parent": None,
        "children": {"completed": 3},
    }  # fmt: skip

    id: int
    """The run's number."""
    title: str
    """What it is about. The agent wrote it: data, never markup."""
    agent: str = Field(validation_alias="plan.agent")
    """The agent's name."""
    agent_version: str = Field(validation_alias="plan.version")
    """The agent's version that the run uses."""
    team: str = Field(validation_alias="team.name")
    """The team that owns it."""
    status: Annotated[str, one_of(Run.Status)]
    """Its status."""
    reason: str
    """Why it ended or waits; empty while it runs."""
    ending: Annotated[str | None, one_of(("now", "completed", "failed", "cancelled", None))]
    """How it ends once the effects that it left behind are settled; now: it then goes on; null: nothing has to be
    settled."""
    next_step: str
    """The next step; empty once it is done."""
    seq: int
    """The number of its newest checkpoint, which is its head."""
    thread: str
    """Its program's name for what it belongs to, such as one conversation; otherwise empty."""
    started_by: str
    """Who started it."""
    created_at: datetime
    """When it was started."""
    deadline: datetime | None
    """When it is cancelled if it still lives; null: never."""
    priority: int
    """From 0, the most urgent, to 9."""
    finished_at: datetime | None
    """When it ended; null while it lives."""
    gates: Annotated[list[int], BeforeValidator(lambda gates: [gate.pk for gate in gates])] = Field(
        validation_alias="open_gates"
    )
    """The gates it waits at now, by id."""
    parent: int | None = Field(validation_alias="parent_id")
    """The run whose step started it; null: none."""
    children: dict[str, int] = Field(validation_alias="child_counts")
    """How many runs its steps started, by status."""

    @staticmethod
    def resolve_ending(run: Run) -> str | None:
        return run.ending or ("now" if run.settling else None)

    @staticmethod
    def resolve_started_by(run: Run) -> str:
        return starter_name(run)


class RunPage(Page):
    """Some runs, newest first."""

    items: list[RunSummary]
    """The runs."""


class RunFilter(Paging):
    """A filter of runs."""

    example: ClassVar = {"status": "waiting", "thread": "chat-1207"}

    status: Annotated[str, refuse_unknown("", *Run.Status.values)] = Field(
        "", json_schema_extra=optional_one_of(*Run.Status.values)
    )
    """Only runs with this status."""

    thread: str = Field("", max_length=200)
    """Only runs of this thread."""


@router.get("", response=RunPage, summary="List runs")
def list_runs(request: HttpRequest, asked: Query[RunFilter]) -> HttpResponse:
    """Return the runs of your teams, newest first."""
    runs = Run.objects.visible_to(reader_of(request)).filter(pk__lt=asked.before).order_by("-id")
    if asked.status:
        runs = runs.filter(status=asked.status)
    if asked.thread:
        runs = runs.filter(thread=one_line(asked.thread, 200))
    found = runs.select_related("plan", "team", "started_by").prefetch_related(OPEN_GATES)
    return RunPage.answer_rows(count_children(found[: asked.limit + 1]), asked)


@router.get("/{int:run_id}", response=RunSummary, summary="Read a run")
def get_run(request: HttpRequest, run_id: RunId) -> HttpResponse:
    """Return one run of your teams."""
    return answer_json(summed_up(run_or_404(request, run_id)))


class ChildAnswer(ApiSchema):
    """A run that a step of another started."""

    example: ClassVar = {
        "id": 8, "title": "Look up A-1", "agent": "research", "status": "waiting", "reason": "", "step": "look_up",
        "held": False, "stands": True, "ordered": None, "gates": [42],
    }  # fmt: skip

    id: int = Field(validation_alias="run_id")
    """The run's number."""
    title: str = Field(validation_alias="run.title")
    """What it is about."""
    agent: str
    """Its agent's name."""
    status: Annotated[str, one_of(Run.Status)] = Field(validation_alias="run.status")
    """Its status."""
    reason: str = Field(validation_alias="run.reason")
    """Why it ended or waits."""
    step: str
    """The step of its parent that started it."""
    held: bool
    """It waits until fewer runs of its parent are at work."""
    stands: bool
    """The parent's path counts on it. If not, an equal start takes it over, and what it did is undone before the parent
    ends, unless a fork counts on it."""
    ordered: Annotated[str | None, or_null, one_of(("cancel", "undo", None))]
    """What its parent decided: that it ends, or that what it did is undone; null: nothing."""
    gates: list[int]
    """The gates it waits at now, by id."""


class ChildPage(Page):
    """Some of a run's children, newest first."""

    items: list[ChildAnswer]
    """The children."""


@router.get("/{int:run_id}/children", response=ChildPage, summary="List a run's children")
def list_children(request: HttpRequest, run_id: RunId, asked: Query[Paging]) -> HttpResponse:
    """Return the runs that the steps of a run of your teams started, newest first; by an agent's token, those of it."""
    run = run_or_404(request, run_id)
    visible = Run.objects.visible_to(reader_of(request))
    found = ChildLink.objects.filter(parent=run, run__in=visible, pk__lt=asked.before).order_by("-pk")
    rows: list[Any] = list(found.select_related("run").prefetch_related(CHILD_GATES)[: asked.limit + 1])
    path = RunPath.to(run.head) if run.head and rows else RunPath([])
    for row in rows:
        row.gates, row.stands = [gate.pk for gate in row.run.open_gates], child_runs.stands(row, path)
    return ChildPage.answer_rows(rows, asked)


def summed_up(run: Run) -> RunSummary:
    """Return the run with its open gates and the counts of its children."""
    count_children([run])
    run.open_gates = list(Gate.objects.open().filter(run=run).order_by("pk"))  # type: ignore[attr-defined]
    return RunSummary.from_orm(run)


effects = Router(tags=["effects"], auth=require_scope(TokenScope.READ))


class EffectSummary(ApiSchema):
    """One effect, or the undo of one."""

    example: ClassVar = {
        "id": 12, "step": "wire", "status": "done", "unsettled": False, "key": KEY, "grant": 5, "action": "wire",
        "undoes": None, "taken_from": None, "irreversible": False, "attempts": 1, "checkpoints": [4], "error": "",
        "intended_at": "2026-03-02T09:15:04.120931Z", "settled_at": "2026-03-02T09:15:05.004211Z",
    }  # fmt: skip

    id: int
    """The effect's number."""
    step: str
    """The step that performs it."""
    status: Annotated[str, one_of(Effect.Status)]
    """Its status. kept: it is not undone although the run went another way; abandoned: its result is unknown, and a
    person ordered it again."""
    unsettled: bool
    """Whether the run has left it behind, so that it will be undone or kept."""
    key: str
    """The idempotency key under which it was sent, in hex."""
    grant: int | None
    """The grant that it used; null if it needs none."""
    action: str
    """The action of the gate that it performs."""
    undoes: Annotated[int | None, or_null]
    """For an undo, the effect that it undoes; otherwise null."""
    taken_from: Annotated[int | None, or_null]
    """The run whose result it reuses, if nothing was sent; otherwise null."""
    irreversible: bool
    """Whether it cannot be undone."""
    attempts: int
    """How often it was begun under its key."""
    checkpoints: list[int] = Field(validation_alias="landed")
    """The numbers of the checkpoints that hold its result."""
    error: str
    """What went wrong, if anything did."""
    intended_at: datetime
    """When it was begun."""
    settled_at: datetime | None
    """When its result was known; null until then."""

    @staticmethod
    def resolve_unsettled(row: LedgerRow, context: dict[str, Any]) -> bool:
        return row.id in context["left"]


class EffectPage(Page):
    """Some effects, in the order in which they were begun."""

    items: list[EffectSummary]
    """The effects, including undos."""


@effects.get("/{int:run_id}/effects", response=EffectPage, summary="List a run's effects")
def list_effects(request: HttpRequest, run_id: RunId, asked: Query[Paging]) -> HttpResponse:
    """List what the run did in the outside world, in the order in which it was begun; each undo after its effect."""
    run = run_or_404(request, run_id)
    rows = rows_of([run.pk])
    left = off_course(rows, read_course(run.pk))
    return EffectPage.answer_rows([row for row in rows if row.id > asked.place], asked, place="id", left=left)
