"""Lists by cursor: a page goes on where the one before it ended, whatever was added since."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import HttpResponse
from ninja import Schema
from pydantic import Field

from .exact_json import answer

MOST = 200


class Paging(Schema):
    """Where a page begins and how long it is."""

    cursor: str = Field(
        "",
        description="The `next` of the previous page; without it, the first page.",
        pattern=r"^[0-9]{0,18}$",
        examples=["41"],
    )
    limit: int = Field(50, description="The largest number of items.", ge=1, le=MOST, examples=[50])

    @property
    def place(self) -> int:
        """Return the id or number that the page before ended with; 0 for the first page."""
        return int(self.cursor or "0")


class Page(Schema):
    """Some rows, which `items` has in the shape of the noun."""

    items: list[Any]
    next: str | None = Field(description="The `cursor` of the next page; null at the end.", examples=["41"])

    @classmethod
    def of(cls, found: QuerySet[Any] | list[Any], asked: Paging, *, place: str = "pk", **context: Any) -> HttpResponse:
        """Answer a page of what was found, of which one row more than the page holds is read.

        `place` names what the cursor goes by; `context` is what the rows' resolvers need beside the row.
        """
        rows = list(found[: asked.limit + 1])
        more = str(getattr(rows[asked.limit - 1], place)) if len(rows) > asked.limit else None
        return answer(cls.model_validate({"items": rows[: asked.limit], "next": more}, context=context))
