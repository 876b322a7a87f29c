"""Checks that the steps of a plan fit together: what they name is there, and what is guarded is allowed."""

from __future__ import annotations

from agents.errors import AgentError
from approvals.engine_rules.gates import DECISION
from approvals.presentation.text.invisible import pieces
from checkpoints.runs.plans import PlanSpec

TITLE = 100  # characters


def check(plan: PlanSpec) -> None:
    """Refuse a plan with names of missing steps, or with a guarded effect that no gate allows. Raises AgentError."""
    specs, by_name = plan.steps, {spec.name: spec for spec in plan.steps}
    _check_titles(plan)
    for spec in specs:
        after = {"catches with": [spec.catch], "goes on with": [spec.then], "jumps to": spec.jumps}
        for word, targets in after.items():
            for target in filter(None, targets):
                if target not in by_name:
                    raise AgentError(f"{plan.agent}.{spec.name} {word} {target}, which is not a step of the agent.")
        where = f"The gate {plan.agent}.{spec.name}"
        for allowed in spec.allows:
            if allowed not in by_name or by_name[allowed].kind != "effect":
                raise AgentError(f"{where} allows {allowed}, which is not an effect of the agent.")
        for word, target in (("on_reject", spec.on_reject), ("on_expire", spec.on_expire), ("on_skip", spec.on_skip)):
            if target and target not in by_name:
                raise AgentError(f"{where} names the unknown step {target} in {word}.")
        if spec.on_reject and by_name[spec.on_reject].kind == "gate":
            raise AgentError(f"{where} goes back to the gate {spec.on_reject}; name a step that can do better.")
        if spec.on_reject and by_name[spec.on_reject].irreversible:
            raise AgentError(f"{where} goes back to {spec.on_reject}, which cannot be undone; name a step before it.")
    allowed_ones = {name for spec in specs for name in spec.allows}
    for spec in specs:
        if spec.guarded and DECISION in spec.reads:
            raise AgentError(
                f"The effect {plan.agent}.{spec.name} reads {DECISION}, which is written after its approval; "
                "let a step before it read that."
            )
        if spec.guarded and spec.name not in allowed_ones:
            raise AgentError(
                f"No gate allows the effect {plan.agent}.{spec.name}; name it in a gate's `allows`, "
                "or declare it with guarded=False."
            )
    _check_catches(plan)


def _check_titles(plan: PlanSpec) -> None:
    """Check that each title is one short line of plain words and that no two are alike."""
    named: dict[str, str] = {}
    for spec in plan.steps:
        where = f"{plan.agent}.{spec.name}"
        if len(spec.title) > TITLE or any(piece.kind != "text" for piece in pieces(spec.title)) or "\n" in spec.title:
            raise AgentError(
                f"{where} has the title {spec.title[:TITLE]!a}; give it one line of plain words, "
                f"at most {TITLE} characters."
            )
        if (other := named.setdefault(spec.title.casefold(), spec.name)) != spec.name:
            raise AgentError(f"{where} and {other} are both called {spec.title}; give one of them another title.")


def _check_catches(plan: PlanSpec) -> None:
    for spec in plan.steps:
        if spec.catch and not spec.loop_guard and spec.name in plan.reachable(spec.catch):
            raise AgentError(
                f"{plan.agent}.{spec.name} catches with {spec.catch}, from where the run may come back to it; "
                "give it a loop_guard, or it may go round for ever."
            )
