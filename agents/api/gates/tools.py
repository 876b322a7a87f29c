"""Tools that people registered: what may be asked under their names, and how it is drawn."""

from __future__ import annotations

from typing import Any, Self

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router, Schema
from pydantic import Field

from agents.api.protocol.auth import needs
from agents.api.protocol.exact_json import answer
from agents.api.protocol.paging import NEXT, Paging, next_of
from agents.models import TokenScope
from agents.queries.access import reader_of
from approvals.gates.queues import seen_by
from approvals.models import Gate, Tool

from .cards import SCHEMA

router = Router(tags=["tools"], auth=needs(TokenScope.READ))


class RegisteredTool(Schema):
    """A tool that people registered, in the version that counts for new gates."""

    team: str = Field(description="The team that it is registered for.", examples=["Support"])
    name: str = Field(description="The name that actions give in `tool`.", examples=["bank.wire"])
    version: int = Field(description="Each change makes a new version.", examples=[1])
    title: str = Field(description="The title that reviewers read.", examples=["Wire money"])
    arguments: dict[str, Any] = Field(
        description="The JSON Schema of its arguments; arguments that do not fit are refused.", examples=[SCHEMA]
    )
    pinned: list[str] = Field(
        description="JSON Pointers to arguments that are shown first and never folded.", examples=[["/amount"]]
    )
    risk: str = Field(
        description="Actions with this tool have at least this risk.",
        examples=["high"],
        json_schema_extra={"enum": list(Gate.Risk.values)},
    )
    irreversible: bool = Field(description="Whether it cannot be undone.", examples=[True])
    undo: str = Field(description="How to undo it, for people; empty: unknown.", examples=[""])

    @classmethod
    def of(cls, tool: Tool) -> Self:
        """Needs its team."""
        own = ("name", "version", "title", "pinned", "risk", "irreversible", "undo")
        return cls(team=tool.team.name, arguments=dict(tool.schema), **{name: getattr(tool, name) for name in own})


class ToolPage(Schema):
    """Some registered tools."""

    items: list[RegisteredTool] = Field(description="The tools.")
    next: str | None = NEXT


@router.get("", response=ToolPage, operation_id="list_tools", summary="List registered tools")
def listing(request: HttpRequest, asked: Query[Paging]) -> HttpResponse:
    """The tools that people registered for your teams. Under a policy that demands it nothing else may be asked."""
    found = Tool.objects.in_use().filter(team__in=seen_by(reader_of(request)).values("pk"), pk__gt=asked.place)
    rows = list(found.select_related("team").order_by("pk")[: asked.limit + 1])
    items = [RegisteredTool.of(tool) for tool in rows[: asked.limit]]
    return answer(ToolPage(items=items, next=next_of([tool.pk for tool in rows], asked.limit)))
