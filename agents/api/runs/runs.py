"""Runs: the list, and one."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, ClassVar

from django.db.models import Prefetch
from django.http import HttpRequest, HttpResponse
from ninja import Query, Router
from pydantic import Field

from agents.access import reader_of, run_or_404
from agents.api.protocol import (
    ApiSchema,
    Page,
    Paging,
    RunId,
    answer_json,
    one_of,
    optional_one_of,
    refuse_unknown,
    require_scope,
)
from agents.api.runs import child_records
from agents.models import ChildLink, TokenScope
from agents.runs.query import starter_name
from agents.text import one_line
from approvals.models import Gate
from checkpoints.models import Run

router = Router(tags=["runs"], auth=require_scope(TokenScope.READ))
OPEN_GATES = Prefetch("gates", Gate.objects.open().order_by("pk"), to_attr="open_gates")


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
    gates: list[int]
    """The gates it waits at now, by id."""
    parent: int | None = Field(validation_alias="parent_id")
    """The run whose step started it; null: none."""
    children: dict[str, int]
    """How many runs its steps started, by status."""

    @staticmethod
    def resolve_ending(run: Run) -> str | None:
        return run.ending or ("now" if run.settling else None)

    @staticmethod
    def resolve_started_by(run: Run) -> str:
        return starter_name(run)

    @staticmethod
    def resolve_children(run: Run) -> dict[str, int]:
        counts: dict[str, int] = run.child_counts  # type: ignore[attr-defined]
        return counts

    @staticmethod
    def resolve_gates(run: Run) -> list[int]:
        gates: list[Gate] = run.open_gates  # type: ignore[attr-defined]
        return [gate.pk for gate in gates]


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
    runs = Run.objects.visible_to(reader_of(request)).order_by("-id")
    if asked.status:
        runs = runs.filter(status=asked.status)
    if asked.thread:
        runs = runs.filter(thread=one_line(asked.thread, 200))
    if asked.cursor:
        runs = runs.filter(pk__lt=asked.place)
    found = runs.select_related("plan", "team", "started_by").prefetch_related(OPEN_GATES)
    return RunPage.answer_rows(child_records.count_for(found[: asked.limit + 1]), asked)


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
    ordered: Annotated[str | None, one_of(("cancel", "undo", None))]
    """What its parent decided: that it ends, or that what it did is undone; null: nothing."""
    gates: list[int]
    """The gates it waits at now, by id."""

    @staticmethod
    def resolve_ordered(row: ChildLink) -> str | None:
        return row.ordered or None


class ChildPage(Page):
    """Some of a run's children, newest first."""

    items: list[ChildAnswer]
    """The children."""


@router.get("/{int:run_id}/children", response=ChildPage, summary="List a run's children")
def list_children(request: HttpRequest, run_id: RunId, asked: Query[Paging]) -> HttpResponse:
    """Return the runs that the steps of a run of your teams started, newest first; by an agent's token, those of it."""
    run = run_or_404(request, run_id)
    found = child_records.of_run(run, reader_of(request))
    if asked.cursor:
        found = found.filter(pk__lt=asked.place)
    return ChildPage.answer_rows(child_records.annotate_children(run, found[: asked.limit + 1]), asked)


def summed_up(run: Run) -> RunSummary:
    """Return the run with its open gates and the counts of its children."""
    child_records.count_for([run])
    run.open_gates = list(Gate.objects.open().filter(run=run).order_by("pk"))  # type: ignore[attr-defined]
    return RunSummary.from_orm(run)
