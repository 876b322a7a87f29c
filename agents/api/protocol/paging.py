"""Lists by cursor: a page goes on where the one before it ended, whatever was added since."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db.models import QuerySet
from django.http import HttpResponse
from pydantic import Field

from .exact_json import answer_json
from .schemas import ApiSchema

MOST = 200


class Paging(ApiSchema):
    """The start and the length of a page."""

    example: ClassVar = {"cursor": "41", "limit": 50}

    cursor: str = Field("", pattern=r"^[0-9]{0,18}$")
    """The `next` of the previous page; without it, the first page."""
    limit: int = Field(50, ge=1, le=MOST)
    """The largest number of items."""

    @property
    def place(self) -> int:
        """Return the last id or number of the previous page; 0 for the first page."""
        return int(self.cursor or "0")


class Page(ApiSchema):
    """One page of rows; a subclass gives `items` its shape."""

    example: ClassVar = {"next": "41"}

    items: list[Any]
    next: str | None
    """The `cursor` of the next page; null at the end."""

    @classmethod
    def answer_rows(
        cls, results: QuerySet[Any] | list[Any], asked: Paging, *, place: str = "pk", **context: Any
    ) -> HttpResponse:
        """Answer with a page of what was found, of which one row more than the page holds is read.

        `place` names the field of the cursor; `context` is what the rows' resolvers need beside the row.
        """
        rows = list(results[: asked.limit + 1])
        more = str(getattr(rows[asked.limit - 1], place)) if len(rows) > asked.limit else None
        return answer_json(cls.model_validate({"items": rows[: asked.limit], "next": more}, context=context))
