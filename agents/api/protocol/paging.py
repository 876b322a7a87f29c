"""Lists by cursor: a page goes on where the one before it ended, whatever was added since."""

from __future__ import annotations

from ninja import Schema
from pydantic import Field

MOST = 200


class Paging(Schema):
    """Where a page begins and how long it is."""

    cursor: str = Field(
        "",
        title="Cursor",
        description="The `next` of the previous page; without it, the first page.",
        pattern=r"^[0-9]{0,18}$",
        examples=["41"],
    )
    limit: int = Field(50, title="Limit", description="The largest number of items.", ge=1, le=MOST, examples=[50])

    @property
    def place(self) -> int:
        """The id or number that the page before ended with; 0 for the first page."""
        return int(self.cursor or "0")


def next_of(ids: list[int], limit: int) -> str | None:
    """The cursor after the page, from the ids found, one more of which were asked for than it holds."""
    return str(ids[limit - 1]) if len(ids) > limit else None


NEXT = Field(description="The `cursor` of the next page; null at the end.", examples=["41"])
