"""Runs: the list, and one."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from django.db.models import Prefetch
from django.http import HttpRequest, HttpResponse
from ninja import Query, Router, Schema
from pydantic import Field

from agents.api.protocol import Page, Paging, RunId, answer, known, needs, one_of, optional
from agents.models import TokenScope
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
    finished_at: datetime | None = Field(description="When it ended; null while it lives.", examples=[None])
    gates: list[int] = Field(description="The gates it waits at now, by id.", examples=[[42]])

    @staticmethod
    def resolve_ending(run: Run) -> str | None:
        return run.ending or ("now" if run.settling else None)

    @staticmethod
    def resolve_started_by(run: Run) -> str:
        return starter(run)

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
    return RunPage.of(runs.select_related("plan", "team", "started_by").prefetch_related(OPEN_GATES), asked)


@router.get("/{int:run_id}", response=RunSummary, summary="Read a run")
def get_run(request: HttpRequest, run_id: RunId) -> HttpResponse:
    """Return one run of your teams."""
    return answer(summed_up(run_or_404(request, run_id)))


def summed_up(run: Run) -> RunSummary:
    """Return the run with its open gates."""
    run.open_gates = list(Gate.objects.open().filter(run=run).order_by("pk"))  # type: ignore[attr-defined]
    return RunSummary.from_orm(run)
