"""Random small agents over the model engine, and what people do to their runs."""

from __future__ import annotations

import hashlib
from random import Random
from typing import Any

from checkpoints.runs.plans import PlanSpec, StepSpec
from checkpoints.values.ops import Append, Splice

from .model import Engine, Gate, Method

FIELDS = ("a", "b", "c", "d")
LIST = "log"


def chance(dice: Random, share: float) -> bool:
    return dice.random() < share


def hashed(*parts: Any) -> int:
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:4])


def make_plan(dice: Random) -> PlanSpec:
    """Three to seven steps, some of them effects and gates; whatever is guarded has a gate that can allow it."""
    names = [f"s{number}" for number in range(dice.randint(3, 7))]
    kinds = [dice.choice(["step", "step", "step", "effect", "effect", "gate"]) for _ in names]
    gates = [name for name, kind in zip(names, kinds, strict=True) if kind == "gate"]
    allowed: dict[str, list[str]] = {name: [] for name in gates}
    steps = []
    for name, kind in zip(names, kinds, strict=True):
        reads = tuple(dice.sample((*FIELDS, LIST), dice.randint(0, 2)))
        if chance(dice, 0.1) and kind != "effect":
            reads += ("decision",)
        if chance(dice, 0.2):
            reads += ("feedback",)
        given: dict[str, Any] = {"reads": reads, "code_hash": "ab"}
        if kind != "gate":
            given["writes"] = tuple(dice.sample((*FIELDS, LIST), dice.randint(0, 2)))
            given["jumps"] = tuple(dice.sample(names, 1)) if chance(dice, 0.3) else ()
            given["ends"] = chance(dice, 0.1)
        if kind == "step":
            given["reads_world"] = chance(dice, 0.15)
            if chance(dice, 0.2):
                given |= {"validators": ("judge",), "rings": dice.randint(0, 2), "tries": dice.randint(1, 2)}
                given["feedback"] = dice.choice(["", "feedback"])
        if kind == "effect":
            given["irreversible"] = chance(dice, 0.25)
            given["undo"] = "" if given["irreversible"] else "undo"
            given["guarded"] = bool(gates) and chance(dice, 0.6)
            if given["guarded"]:
                for gate in dice.sample(gates, dice.randint(1, min(2, len(gates)))):
                    allowed[gate].append(name)
        if kind == "gate":
            given["asks"] = chance(dice, 0.5)
            given["edits"] = tuple(dice.sample(FIELDS, dice.randint(0, 2)))
            given["feedback"] = "feedback" if chance(dice, 0.7) else ""
            given["on_expire"] = dice.choice(names) if chance(dice, 0.2) else ""
        steps.append(StepSpec(name, kind=kind, **given))
    known = {name: tuple(effects) for name, effects in allowed.items()}
    made = [StepSpec(**{**step_fields(step), "allows": known.get(step.name, ())}) for step in steps]
    return PlanSpec("robo", "1", steps=tuple(made))


def step_fields(step: StepSpec) -> dict[str, Any]:
    return {name: getattr(step, name) for name in step.__slots__}


def make_methods(dice: Random, plan: PlanSpec) -> dict[str, Method]:
    """A function for each step: what it gives depends on what it reads, and for some on the time."""
    return {step.name: make_method(step, dice.randint(0, 10**6), fickle=chance(dice, 0.15)) for step in plan.steps}


def make_method(step: StepSpec, salt: int, *, fickle: bool) -> Method:
    def method(engine: Engine, *inputs: Any) -> Any:
        engine.clock += 1
        world = engine.clock if step.reads_world or fickle else 0
        seed = hashed(salt, inputs, world)
        if step.kind == "gate":
            return step.asks or hashed(salt, inputs) % 3 > 0
        writes = {name: written(name, hashed(seed, name)) for name in step.writes if hashed(seed, name, "?") % 4}
        way = hashed(seed, "way") % 3
        goto = step.jumps[0] if step.jumps and way == 0 else "" if step.ends and way == 1 else None
        return writes, goto

    return method


def written(name: str, seed: int) -> Any:
    if name != LIST:
        return seed % 2
    return [Append([seed % 2]), [seed % 2], Splice(0, 0, [seed % 2])][seed % 3]


def make_engine(seed: int) -> tuple[Engine, Random]:
    dice = Random(seed)
    plan = make_plan(dice)
    return Engine(plan, make_methods(dice, plan)), dice


def answer(engine: Engine, dice: Random, gate: Gate, *, agree: bool = False) -> None:
    """A person's word at a gate; `agree`: nothing that sends the run elsewhere."""
    spec = engine.plan.step(gate.step)
    if gate.recovery:
        choices = ["retry"] if spec.kind == "gate" else ["take", "do_again"]
        engine.decide(gate, "answered", choice=dice.choice(choices if agree else [*choices, "stop"]))
        return
    roll = dice.random()
    back = engine.points[engine.runs[gate.run].head].kind == "reopen"  # where an edit may send the run back
    if roll < 0.5 or (agree and (back or not spec.edits)):
        engine.decide(gate, "approved")
    elif roll < 0.7 or agree:
        patch = {name: dice.randint(0, 1) for name in spec.edits}
        engine.decide(gate, "edited" if patch else "approved", patch=patch)
    elif roll < 0.75:
        engine.decide(gate, "expired")
    elif roll < 0.8:
        engine.decide(gate, "rejected")
    else:
        engine.decide(gate, "rejected", back_to=dice.choice([step.name for step in engine.plan.steps]))


def wander(engine: Engine, dice: Random, run: int, *, turns: int) -> None:
    """Take a run on through some decisions."""
    for _ in range(turns):
        if engine.drive(run) != "waiting":
            return
        gate = engine.open_gate(run)
        assert gate is not None
        if chance(dice, 0.9):
            answer(engine, dice, gate)


def shake(engine: Engine, dice: Random, run: int) -> tuple[str, str, dict[str, Any]]:
    """(kind, checkpoint, writes) of a rewind, an edit or a fork."""
    own = [point for point in engine.points.values() if point.run == run and point.next_step]
    at = dice.choice(own)
    kind = dice.choice(["rewind", "edit", "edit", "fork"])
    writes = {name: dice.randint(0, 1) for name in dice.sample(FIELDS, dice.randint(0, 2))} if kind != "rewind" else {}
    return kind, at.id, writes
