"""What an impact says comes true, over random agents, histories and choices, run by a model of the engine.

Every *will*, *stands*, *undone* and *cannot* comes true, every *may* goes one way or the other, and nothing happens
that was not named.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from random import Random

import pytest

from approvals.impact import Impact, Verdict, impact
from approvals.impact.choices import Saved, answering, expiring, going_back, last_start, stopping

from .making import agreeing
from .model import Endless, Engine, Gate
from .random_plans import answer, make_engine, shake, wander

BATCH = 50


@pytest.mark.parametrize("first", range(0, 750, BATCH))
def test_what_is_foretold_of_a_rewind_an_edit_or_a_fork_comes_true(first: int) -> None:
    assert judged(check, first) > BATCH // 2


@pytest.mark.parametrize("first", range(0, 750, BATCH))
def test_what_is_foretold_of_a_persons_word_at_a_gate_comes_true(first: int) -> None:
    assert judged(check_decision, first) > BATCH // 4


def judged(check: Callable[[int], None], first: int) -> int:
    """How many of a batch were held to what was foretold; the others went round for ever, or met no gate."""
    count = 0
    for seed in range(first, first + BATCH):
        with suppress(Endless):
            check(seed)
            count += 1
    return count


def check_decision(seed: int) -> None:
    engine, dice = make_engine(seed)
    run = lived(engine, dice)
    gate = engine.open_gate(run)
    for _ in range(4):
        if gate is not None:
            break
        kind, at, writes = shake(engine, dice, run)
        run = engine.fork(at, writes) if kind == "fork" else run
        if kind != "fork":
            engine.move(run, at, kind, writes)
        wander(engine, dice, run, turns=dice.randint(0, 2))
        engine.drive(run)
        gate = engine.open_gate(run)
    if gate is None:
        raise Endless
    said, decide = word(engine, dice, gate)
    before = {row.id: row.status for row in engine.rows}
    engine.trace.clear()
    decide()
    engine.drive(run)
    check_way(engine, run, said, [])
    check_effects(engine, dice, run, said, before)


def word(engine: Engine, dice: Random, gate: Gate) -> tuple[Impact, Callable[[], None]]:
    """What is said of a decision, and the decision."""
    history, fact, spec = engine.history(gate.run), engine.fact(gate), engine.plan.step(gate.step)
    head = engine.points[engine.runs[gate.run].head]
    now = Saved(head.state, head.fields)
    if gate.recovery:
        choice = dice.choice(["retry", "stop"] if spec.kind == "gate" else ["take", "do_again", "stop"])
        target = answering(history, fact, choice, now)
        assert target is not None
        return impact(history, target), lambda: engine.decide(gate, "answered", choice=choice)
    roll = dice.random()
    if roll < 0.5:
        patch = {name: dice.randint(0, 1) for name in spec.edits} if roll < 0.25 else {}
        kind = "edited" if patch else "approved"
        target = agreeing(engine, gate, now.with_writes(patch), patch, kind)
        return impact(history, target), lambda: engine.decide(gate, kind, patch=patch)
    if roll < 0.6:
        return impact(history, expiring(history, fact, now)), lambda: engine.decide(gate, "expired")
    if roll < 0.65:
        return impact(history, stopping(history, fact, now)), lambda: engine.decide(gate, "rejected")
    step = dice.choice([each.name for each in engine.plan.steps])
    start = last_start(history, step)
    at = engine.points[start.parent] if start is not None else None
    before = None if at is None else Saved(at.state, at.fields)
    target = going_back(history, fact, step, now, before=before)
    return impact(history, target), lambda: engine.decide(gate, "rejected", back_to=step)


def lived(engine: Engine, dice: Random) -> int:
    """A run with some past: decisions, rewinds, edits and forks."""
    run = engine.start(a=dice.randint(0, 2), b=dice.randint(0, 2), log=[1])
    wander(engine, dice, run, turns=6)
    for _ in range(dice.randint(0, 3)):
        kind, at, writes = shake(engine, dice, run)
        other = engine.fork(at, writes) if kind == "fork" else run
        if kind != "fork":
            engine.move(run, at, kind, writes)
        wander(engine, dice, other, turns=4)
    return run


def check(seed: int) -> None:
    engine, dice = make_engine(seed)
    run = lived(engine, dice)
    kind, at, writes = shake(engine, dice, run)
    target = engine.target_of(0 if kind == "fork" else run, at, kind, writes)
    if engine.taken_back(at):
        raise Endless
    said = impact(engine.history(run), target)
    before = {row.id: row.status for row in engine.rows}
    kept = [each.id for each in target.path]
    moved = engine.fork(at, writes) if kind == "fork" else run
    if kind != "fork":
        engine.move(run, at, kind, writes)
    engine.trace.clear()
    engine.drive(moved)
    check_way(engine, moved, said, kept)
    check_effects(engine, dice, moved, said, before)


def check_way(engine: Engine, run: int, said: Impact, kept: list[str]) -> None:
    """Up to where a person is asked, or the run ends."""
    ran = Counter(step for what, step in engine.trace if what == "ran")
    reused = Counter(step for what, step in engine.trace if what == "reused")
    asked = [step for what, step in engine.trace if what == "asked"]
    told = f" with {engine.plan}\n{said.rows}\n{engine.trace}"
    will, may = Counter(row.step for row in said.will), {row.step for row in said.may}
    stands = Counter(row.step for row in said.stands if not row.kept)
    asking = {row.step for row in said.asking}
    shaken = {row.step for row in (*said.may_undone, *said.cannot) if row.why == "repair"}
    assert not will - ran, f"will{told}"
    assert not stands - reused, f"stands{told}"
    judged = {row.step for row in said.will if engine.plan.step(row.step).validators}  # tried again where it is refused
    assert all(step in may | judged | asking for step in (ran - will)), f"ran unnamed{told}"
    assert all(step in may | asking | shaken for step in (reused - stands)), f"reused unnamed{told}"
    assert set(asked) <= asking, f"asked unnamed{told}"
    assert not said.asks or asked == [said.asks], f"asks{told}"
    assert not said.ends or engine.runs[run].status in ("completed", "cancelled", "failed"), f"ends{told}"
    on_path = {point.id for point in engine.path(engine.runs[run])}
    assert set(kept) <= on_path


def check_effects(engine: Engine, dice: Random, run: int, said: Impact, before: dict[int, str]) -> None:
    """To the end of the run, where people only agree."""
    for _ in range(20):
        gate = engine.open_gate(run)
        if gate is None:
            break
        answer(engine, dice, gate, agree=True)
        engine.drive(run)
    else:
        raise Endless
    after = {row.id: row.status for row in engine.rows}
    fate = {
        row.effect: row.verdict
        for row in said.rows
        if row.effect and (row.kept or row.why in ("left", "adopted", "told"))
    }
    told = f"\n{said.rows}\n{engine.trace}\n{before}\n{after}"
    for id, was in before.items():
        verdict = fate.get(id)
        if verdict is Verdict.UNDONE:
            assert after[id] == "undone", f"undone {id}{told}"
        if verdict is Verdict.CANNOT or verdict is Verdict.STANDS:
            assert after[id] != "undone", f"{verdict} {id}{told}"
        if after[id] == "undone" and was != "undone":
            assert verdict in (Verdict.UNDONE, Verdict.MAY_UNDONE), f"undone unnamed {id}{told}"
        if after[id] == "kept" and was == "done":
            assert verdict is Verdict.CANNOT, f"kept unnamed {id}{told}"
