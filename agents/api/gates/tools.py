"""Tools that people registered: their arguments, their risk and how they are drawn."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router
from pydantic import Field

from agents.access import reader_of
from agents.api.protocol import ApiSchema, Page, Paging, one_of, require_scope
from agents.models import TokenScope
from approvals.gates.lists.queues import seen_by
from approvals.models import Gate, Tool

from .cards import SCHEMA

router = Router(tags=["tools"], auth=require_scope(TokenScope.READ))


class RegisteredTool(ApiSchema):
    """A tool that people registered, in the version that counts for new gates."""

    example: ClassVar = {
        "team": "Support", "name": "bank.wire", "version": 1, "title": "Wire money", "arguments": SCHEMA,
        "pinned": ["/amount"], "risk": "high", "irreversible": True, "undo": "",
    }  # fmt: skip

    team: str = Field(validation_alias="team.name")
    """The team that it is registered for."""
    name: str
    """The name that actions give in `tool`."""
    version: int
    """Each change makes a new version."""
    title: str
    """The title that reviewers read."""
    arguments: dict[str, Any] = Field(validation_alias="schema")
    """The JSON Schema of its arguments; arguments that do not fit are refused."""
    pinned: list[str]
    """JSON Pointers to arguments that are shown first and never folded."""
    risk: Annotated[str, one_of(Gate.Risk)]
    """Actions with this tool have at least this risk."""
    irreversible: bool
    """Whether it cannot be undone."""
    undo: str
    """How to undo it, for people; empty: unknown."""


class ToolPage(Page):
    """Some registered tools."""

    items: list[RegisteredTool]
    """The tools."""


@router.get("", response=ToolPage, summary="List registered tools")
def list_tools(request: HttpRequest, asked: Query[Paging]) -> HttpResponse:
    """Return the tools that people registered for your teams.

    A gate whose policy demands registered tools may ask for no others.
    """
    found = Tool.objects.in_use().filter(team__in=seen_by(reader_of(request)).values("pk"), pk__gt=asked.place)
    return ToolPage.answer_rows(found.select_related("team").order_by("pk"), asked)
