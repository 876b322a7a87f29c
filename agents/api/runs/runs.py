"""Runs: the list, and one."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from django.db.models import Prefetch
from django.http import HttpRequest, HttpResponse
from ninja import Query, Router, Schema
from pydantic import Field

from agents.api.protocol import Page, Paging, RunId, answer, known, needs, one_of, optional
from agents.models import ChildLink, TokenScope
from agents.queries import child_records
from agents.queries.access import reader_of, run_or_404
from agents.queries.run_story import starter
from agents.text import one_line
from approvals.models import Gate
from checkpoints.models import Run

router = Router(tags=["runs"], auth=needs(TokenScope.READ))
OPEN_GATES = Prefetch("gates", Gate.objects.open().order_by("pk"), to_attr="open_gates")


class RunSummary(Schema):
    """One execution of an agent."""

    id: int = Field(description="The run's number.", examples=[7])
    title: str = Field(description="What it is about. The agent wrote it: data, never markup.", examples=["Refund A-1"])
    agent: str = Field(validation_alias="plan.agent", description="The agent's name.", examples=["refunds"])
    agent_version: str = Field(
        validation_alias="plan.version", description="The agent's version that the run uses.", examples=["1"]
    )
    team: str = Field(validation_alias="team.name", description="The team that owns it.", examples=["Support"])
    status: Annotated[str, one_of(Run.Status)] = Field(description="Its status.", examples=["waiting"])
    reason: str = Field(description="Why it ended or waits; empty while it runs.", examples=[""])
    ending: Annotated[str | None, one_of(("now", "completed", "failed", "cancelled", None))] = Field(
        description="How it ends once the effects that it left behind are settled; now: it then goes on; null: "
        "nothing has to be settled.",
        examples=[None],
    )
    next_step: str = Field(description="The next step; empty once it is done.", examples=["review"])
    seq: int = Field(description="The number of its newest checkpoint, which is its head.", examples=[3])
    thread: str = Field(
        description="Its program's name for what it belongs to, such as one conversation; otherwise empty.",
        examples=["chat-1207"],
    )
    started_by: str = Field(description="Who started it.", examples=["Ann Okafor"])
    created_at: datetime = Field(description="When it was started.", examples=["2026-03-02T09:15:04.120931Z"])
    deadline: datetime | None = Field(
        description="When it is cancelled if it still lives; null: never.", examples=["2026-03-09T09:15:04.120931Z"]
    )
    priority: int = Field(description="From 0, the most urgent, to 9.", examples=[5])
    finished_at: datetime | None = Field(description="When it ended; null while it lives.", examples=[None])
    gates: list[int] = Field(description="The gates it waits at now, by id.", examples=[[42]])
    parent: int | None = Field(
        validation_alias="parent_id", description="The run whose step started it; null: none.", examples=[None]
    )
    children: dict[str, int] = Field(
        description="How many runs its steps started, by status.", examples=[{"completed": 3}]
    )

    @staticmethod
    def resolve_ending(run: Run) -> str | None:
        return run.ending or ("now" if run.settling else None)

    @staticmethod
    def resolve_started_by(run: Run) -> str:
        return starter(run)

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

    items: list[RunSummary] = Field(description="The runs.")


class RunFilter(Paging):
    """A filter of runs."""

    status: Annotated[str, known("", *Run.Status.values)] = Field(
        "",
        description="Only runs with this status.",
        examples=["waiting"],
        json_schema_extra=optional(*Run.Status.values),
    )

    thread: str = Field("", description="Only runs of this thread.", max_length=200, examples=["chat-1207"])


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
    return RunPage.of(child_records.count_for(found[: asked.limit + 1]), asked)


@router.get("/{int:run_id}", response=RunSummary, summary="Read a run")
def get_run(request: HttpRequest, run_id: RunId) -> HttpResponse:
    """Return one run of your teams."""
    return answer(summed_up(run_or_404(request, run_id)))


class ChildAnswer(Schema):
    """A run that a step of another started."""

    id: int = Field(validation_alias="run_id", description="The run's number.", examples=[8])
    title: str = Field(validation_alias="run.title", description="What it is about.", examples=["Look up A-1"])
    agent: str = Field(description="Its agent's name.", examples=["research"])
    status: Annotated[str, one_of(Run.Status)] = Field(
        validation_alias="run.status", description="Its status.", examples=["waiting"]
    )
    reason: str = Field(validation_alias="run.reason", description="Why it ended or waits.", examples=[""])
    step: str = Field(description="The step of its parent that started it.", examples=["look_up"])
    held: bool = Field(description="It waits until fewer runs of its parent are at work.", examples=[False])
    stands: bool = Field(
        description="The parent's path counts on it. If not, an equal start takes it over, and what it did is undone "
        "before the parent ends, unless a fork counts on it.",
        examples=[True],
    )
    ordered: Annotated[str | None, one_of(("cancel", "undo", None))] = Field(
        description="What its parent decided: that it ends, or that what it did is undone; null: nothing.",
        examples=[None],
    )
    gates: list[int] = Field(description="The gates it waits at now, by id.", examples=[[42]])

    @staticmethod
    def resolve_ordered(row: ChildLink) -> str | None:
        return row.ordered or None


class ChildPage(Page):
    """Some of a run's children, newest first."""

    items: list[ChildAnswer] = Field(description="The children.")


@router.get("/{int:run_id}/children", response=ChildPage, summary="List a run's children")
def list_children(request: HttpRequest, run_id: RunId, asked: Query[Paging]) -> HttpResponse:
    """Return the runs that the steps of a run of your teams started, newest first; by an agent's token, those of it."""
    run = run_or_404(request, run_id)
    found = child_records.of_run(run, reader_of(request))
    if asked.cursor:
        found = found.filter(pk__lt=asked.place)
    return ChildPage.of(child_records.told(run, found[: asked.limit + 1]), asked)


def summed_up(run: Run) -> RunSummary:
    """Return the run with its open gates and the counts of its children."""
    child_records.count_for([run])
    run.open_gates = list(Gate.objects.open().filter(run=run).order_by("pk"))  # type: ignore[attr-defined]
    return RunSummary.from_orm(run)
