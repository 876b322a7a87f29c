"""Plans as a client writes them without more ado: under the token's own agent, their steps without a code hash."""

from __future__ import annotations

from approvals.models import Gate
from tests.agents.remote.outside_program import STEPS, Program, decide


def test_a_dash_stands_for_the_agent_of_the_token() -> None:
    program = Program()
    own, program.agent = program.agent, "-"
    assert program.register()["agent"] == own


def test_a_no_goes_back_to_a_step_without_a_code_hash() -> None:
    """The preview of such a decision, and with it the decision, ended in an error of the server."""
    program = Program()
    program.register(steps=[{name: each for name, each in step.items() if name != "code_hash"} for step in STEPS])
    told = program.ok(program.post("runs", {"agent": program.agent, "input": {"invoice": {"number": 7}}}))
    program.run = told["id"]
    program.claim()
    program.draft()
    gate = program.ask()["gate"]
    assert program.client.get(f"/api/gates/{gate}/impacts").status_code == 200
    decide(Gate.objects.get(pk=gate), "reject", comment="Less.", then="back")
    assert program.claim()["next"]["step"] == "draft"
