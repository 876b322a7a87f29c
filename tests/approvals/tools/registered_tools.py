"""Tools that people registered, for tests."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import Group

from approvals import tools
from approvals.models import Tool, versions
from checkpoints import actors

WIRE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "to": {"title": "Recipient", "type": "string", "maxLength": 40},
        "amount": {"title": "Amount", "type": "string", "format": "decimal", "pattern": r"^[0-9]{1,5}[.][0-9]{2}$"},
        "ref": {"title": "Reference", "type": "string"},
    },
    "required": ["to", "amount"],
}


def make_tool(team: Group, **said: Any) -> Tool:
    """The next version of the team's tool `bank.wire`, as people registered it."""
    tool = Tool(
        **{
            "team": team, "name": "bank.wire", "title": "Wire money", "schema": tools.closed(WIRE),
            "pinned": ["/amount", "/to"], "risk": "high", **said,
        }
    )  # fmt: skip
    versions.write(tool, by=actors.SYSTEM)
    return tool
