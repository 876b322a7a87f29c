"""The gateway's policy: which tools pass, which are asked about, which are refused. Pure.

The server describes its own tools, so its hints are claims: readOnlyHint lets a tool pass only if the policy believes
the server (`hints`). What nobody says is read-only is asked about.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any, Literal

from mcp_types import Tool
from pydantic import BaseModel, ConfigDict, Field, field_validator

from ...posting import Risk
from ..asking import WAIT

Verb = Literal["pass", "ask", "refuse"]


class Rule(BaseModel):
    """The rule for calls of a tool: they pass, are asked about, or are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    do: Verb
    risk: Risk = "medium"
    pinned: tuple[str, ...] = ()  # arguments that people have to check
    policy: str = ""  # by which people decide
    idempotent: bool = False  # it may be called twice with the same arguments without harm


class Policy(BaseModel):
    """The operator's policy; without any, everything is asked about.

    `tools`: a rule by name or glob, of which the first that matches counts.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    tools: dict[str, Rule] = {}
    hints: bool = Field(False, description="Whether tools that say that they only read pass.")
    wait: float = Field(WAIT, gt=0, le=3600, description="Seconds that a call waits for people.")
    policy: str = Field("", description="The policy by which people decide, where a rule names none.")
    thread: str = Field("", description="The conversation under which the runs are listed.")
    results: bool = Field(True, description="Whether the results of calls are kept with the run.")

    @field_validator("tools", mode="before")
    @classmethod
    def short(cls, value: Any) -> Any:
        """Read a verb alone as a rule."""
        if not isinstance(value, dict):
            return value
        return {name: {"do": rule} if isinstance(rule, str) else rule for name, rule in value.items()}

    def rule(self, tool: Tool) -> Rule:
        """Return the rule for a tool."""
        hints = tool.annotations
        for pattern, rule in self.tools.items():
            if fnmatchcase(tool.name, pattern):
                return rule
        destroys = bool(hints and hints.destructive_hint)
        if self.hints and hints and hints.read_only_hint and not destroys:
            return Rule(do="pass")
        idempotent = bool(self.hints and hints and hints.idempotent_hint)
        return Rule(do="ask", risk="high" if destroys else "medium", idempotent=idempotent)
