"""Tools that people registered: their arguments, their risk and how they are drawn."""

from __future__ import annotations

from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router, Schema
from pydantic import Field

from agents.api.protocol import Page, Paging, needs, one_of
from agents.models import TokenScope
from agents.queries.access import reader_of
from approvals.gates.lists.queues import seen_by
from approvals.models import Gate, Tool

from .cards import SCHEMA

router = Router(tags=["tools"], auth=needs(TokenScope.READ))


class RegisteredTool(Schema):
    """A tool that people registered, in the version that counts for new gates."""

    team: str = Field(
        validation_alias="team.name", description="The team that it is registered for.", examples=["Support"]
    )
    name: str = Field(description="The name that actions give in `tool`.", examples=["bank.wire"])
    version: int = Field(description="Each change makes a new version.", examples=[1])
    title: str = Field(description="The title that reviewers read.", examples=["Wire money"])
    arguments: dict[str, Any] = Field(
        validation_alias="schema",
        description="The JSON Schema of its arguments; arguments that do not fit are refused.",
        examples=[SCHEMA],
    )
    pinned: list[str] = Field(
        description="JSON Pointers to arguments that are shown first and never folded.", examples=[["/amount"]]
    )
    risk: Annotated[str, one_of(Gate.Risk)] = Field(
        description="Actions with this tool have at least this risk.", examples=["high"]
    )
    irreversible: bool = Field(description="Whether it cannot be undone.", examples=[True])
    undo: str = Field(description="How to undo it, for people; empty: unknown.", examples=[""])


class ToolPage(Page):
    """Some registered tools."""

    items: list[RegisteredTool] = Field(description="The tools.")


@router.get("", response=ToolPage, summary="List registered tools")
def list_tools(request: HttpRequest, asked: Query[Paging]) -> HttpResponse:
    """Return the tools that people registered for your teams.

    A gate whose policy demands registered tools may ask for no others.
    """
    found = Tool.objects.in_use().filter(team__in=seen_by(reader_of(request)).values("pk"), pk__gt=asked.place)
    return ToolPage.of(found.select_related("team").order_by("pk"), asked)
