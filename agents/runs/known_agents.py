"""The agents that a reader may see: those whose runs they see, and those that they may start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest

from agents.access import reader_of
from agents.definition import registry
from agents.definition.registered import RegisteredAgent
from agents.definition.upcast import version_key
from approvals.live import page_frame
from checkpoints.access import token_scope
from checkpoints.access.permissions import START_RUN, teams_where
from checkpoints.models import Plan
from checkpoints.runs.plans import spec_of


@dataclass(frozen=True)
class KnownAgent:
    """One agent as the reader may see it: its stored plans, the newest first, and its code if it is deployed here."""

    name: str
    plans: list[Plan]
    here: RegisteredAgent | None

    @property
    def spec(self) -> Any:
        return self.here.spec if self.here else spec_of(self.plans[0])

    @property
    def lacks(self) -> str:
        """Return what has to be set up before a run of it can work; empty if nothing has."""
        return self.here.agent.lacks() if self.here else ""

    @property
    def external(self) -> bool:
        """Tell whether its code is elsewhere."""
        return self.here is None and self.plans[0].external

    @property
    def doc(self) -> str:
        """Return the first paragraph of its author's description."""
        return (self.here.agent.__doc__ or "").strip().partition("\n\n")[0] if self.here else ""


def known_to(request: HttpRequest, name: str = "") -> list[KnownAgent]:
    """Return the agents whose runs the reader sees, and those that they may start, by name."""
    reader, seen = reader_of(request), Plan.objects.of_teams(list(page_frame.reach_of(request).teams))
    stored: dict[str, list[Plan]] = {}
    for plan in (seen.filter(agent=name) if name else seen).order_by("-pk"):
        stored.setdefault(plan.agent, []).append(plan)
    here = _here() if stored or teams_where(reader, START_RUN).exists() else {}
    startable = here.keys() if teams_where(reader, START_RUN).exists() else ()
    only = {word for word in (name, token_scope.bounds_of(reader).agent) if word}
    names = sorted(item for item in {*stored, *startable} if only <= {item})
    return [KnownAgent(name, stored.get(name, []), here.get(name)) for name in names]


def _here() -> dict[str, RegisteredAgent]:
    """Map the name of each agent of this process to its newest version."""
    known = registry.agents()
    return {name: known[name, version] for name, version in sorted(known, key=lambda key: version_key(key[1]))}
