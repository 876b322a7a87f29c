"""A program that sells tickets by a framework's agent, and where the frameworks differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.clients.framework_programs import program
from tests.clients.scripted_model import Call, ScriptedModel
from tests.clients.world import World
from tests.conftest import Starter
from tests.harness.services import Service
from tests.harness.session import ROOT

REFUND: Call = ("refund", {"order": "7", "amount": "20.00"})
MAIL: Call = ("mail", {"to": "marit@example.org"})
LOOK: Call = ("look", {"order": "7"})
DIE: Call = ("die", {"order": "7"})
LESS = {"order": "7", "amount": "10.00"}
NO_MAIL = {"refund": {"verdict": "approve"}, "mail": {"verdict": "reject", "reason": "She has no mail."}}


@dataclass
class Teller:
    """The program of one framework in a world of its own."""

    framework: str
    file: str
    world: World
    start_service: Starter
    paid: Any  # what a refund of 20.00 returns
    unreadable: str  # what is said of a state that another version of the framework saved
    other: tuple[str, str]  # an agent that may not go on, and why

    def start(self, model: ScriptedModel, how: str, *words: object, agent: str = "plain", **env: str) -> Service:
        """Start `FILE AGENT run KEY | defer [KEY] | resume GATE [TIMEOUT] | sync KEY`."""
        file = ROOT / "tests" / "clients" / self.framework / "programs" / self.file
        return program(self.start_service, self.world, model, file, agent, how, *words, **env)

    def deferred(self, model: ScriptedModel, *words: object, **env: str) -> int:
        """The number of the gate at which a program that does not wait has asked."""
        return int(self.start(model, "defer", *words, **env).says(r"pending \d+").split()[1])


def make_teller(framework: str, web: str, start_service: Starter) -> Teller:
    if framework == "openai_agents":
        differs: dict[str, Any] = {
            "file": "openai_teller.py", "paid": "paid 20.00",
            "unreadable": r".*schema version is not supported.* the version of openai-agents that did, or run",
            "other": ("renamed", "The saved RunState cannot be restored: .* Resume with the agents that saved it"),
        }  # fmt: skip
    else:
        differs = {
            "file": "pydantic_teller.py", "paid": {"paid": "20.00"},
            "unreadable": r"The saved messages cannot be read: .* the version of pydantic-ai that saved them, or run",
            "other": ("clerk", r"The run is of the agent Teller, not of Clerk\. Resume it with Teller\."),
        }  # fmt: skip
    return Teller(framework, world=World(web), start_service=start_service, **differs)
