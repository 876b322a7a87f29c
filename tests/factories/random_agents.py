"""Random agents: real classes in real modules, made from a seed, for what has to hold of any agent.

A step's output follows from what it reads, by `mix`, mostly in a small range: so different inputs often give the same
output, and a ripple ends early. Effects are written down in `WORLD`, which is all the world there is; what looks
outside reads `WORLD.weather`. Loops are bounded by counters that only ever grow.
"""

from __future__ import annotations

import importlib.util
import random
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from agents import Agent, EffectUnknown

HEADER = '''"""Made by tests.factories.random_agents; seed {seed}."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from agents import Action, Agent, Append, Card, Done, Jump, Precondition, Splice
from agents import effect, gate, observation, step, validator
from tests.factories.random_agents import WORLD, Box, mix


class Made(Agent):
    """Seed {seed}."""

    name = "{name}"

    class State(BaseModel):
        """Anything."""

{fields}
'''


class Box(BaseModel):
    n: int = 0


@dataclass
class World:
    """All that effects do, what is looked at from outside, and what goes wrong: how often, by dice of its own."""

    weather: int = 0
    done: list[tuple[str, str]] = field(default_factory=list)  # (step, key)
    undone: list[tuple[str, str]] = field(default_factory=list)
    dice: random.Random = field(default_factory=random.Random)
    cut: float = 0.0  # effects and undos whose answer never arrives
    drift: float = 0.0  # looks that find another world
    turns: int = 0
    strict: float = 0.0  # outputs that are refused, of a judged step
    refused: Counter[str] = field(default_factory=Counter)  # step -> its outputs refused since one was accepted

    def do(self, step: str, key: str) -> None:
        self.done.append((step, key))
        self._cut()

    def undo(self, step: str, key: str) -> None:
        self.undone.append((step, key))
        self._cut()

    def _cut(self) -> None:
        if self.dice.random() < self.cut:
            raise EffectUnknown("the line was cut")

    def look(self) -> int:
        self.turns += self.dice.random() < self.drift
        return self.turns

    def judge(self, step: str) -> list[str]:
        """Say what is wrong with an output; never more often than the plan's rings and tries allow."""
        if self.dice.random() >= self.strict or self.refused[step] >= MOST_REFUSED:
            self.refused[step] = 0
            return []
        self.refused[step] += 1
        return [f"not yet {self.dice.random()}"]


MOST_REFUSED = 3
WORLD = World()


def mix(*values: Any) -> int:
    return zlib.crc32(repr([each.n if isinstance(each, Box) else each for each in values]).encode())


@dataclass(frozen=True)
class Knobs:
    """How often a step is what; the rest are plain. `width`: how many of the recent outputs a step may read."""

    steps: tuple[int, int] = (10, 30)
    effects: float = 0.25
    guarded: float = 0.5
    irreversible: float = 0.3
    gates: float = 0.12
    passing: float = 0.4  # of the gates that allow nothing: those that may have nothing to ask
    jumps: float = 0.12
    loops: float = 0.08
    ends: float = 0.03
    world: float = 0.08
    lists: float = 0.15
    keyed: float = 0.3  # effects whose result has the key in it
    judged: float = 0.0  # of the plain steps: those whose output may be refused
    several: float = 0.0  # of the further effects that a gate allows: those that it asks about by themselves
    expiring: float = 0.0  # of the gates: those whose deadline sends the run elsewhere
    observing: float = 0.0  # of the gates that allow something: those that insist on what the world is like
    beside: float = 0.0  # of the gates: those from which the run goes on while people decide
    width: int = 8
    range: tuple[int, ...] = (2, 3, 5, 1000)


@dataclass
class Sketch:
    name: str
    kind: str
    reads: list[str] = field(default_factory=list)
    allows: list[str] = field(default_factory=list)


class Maker:
    def __init__(self, seed: int, knobs: Knobs) -> None:
        self.rng = random.Random(f"agent {seed}")
        self.seed, self.knobs = seed, knobs
        count = self.rng.randint(*knobs.steps)
        self.inputs = [f"x{n}" for n in range(3)]
        self.plain = [f"f{n}" for n in range(max(3, count // 2))]
        self.lists = ["l0", "l1"]
        self.boxes = ["b0", "b1"]
        self.more: dict[str, str] = {}
        self.sketches = [Sketch(f"s{n}", self._kind(n)) for n in range(count)]
        self._allow()

    def source(self, name: str) -> str:
        bodies = [self._body(number, sketch) for number, sketch in enumerate(self.sketches)]
        fields = [f"{each}: int = {self.rng.randrange(5)}" for each in [*self.inputs, *self.plain]]
        fields += [f"{each}: list[int] = []" for each in self.lists]
        fields += [f"{each}: Box = Box()" for each in self.boxes]
        fields += ["feedback: list[dict[str, Any]] = []"]
        fields += [f"{each}: {kind}" for each, kind in self.more.items()]
        lines = "\n".join(f"        {line}" for line in fields)
        looks = _method("observation", "outlook", "", ["return WORLD.look()"])
        return HEADER.format(seed=self.seed, name=name, fields=lines) + "\n" + "\n".join([looks, *bodies])

    def _kind(self, number: int) -> str:
        if number == 0:
            return "step"
        roll = self.rng.random()
        if roll < self.knobs.gates:
            return "gate"
        return "effect" if roll < self.knobs.gates + self.knobs.effects else "step"

    def _allow(self) -> None:
        """Let a gate before it allow every guarded effect, where there is one."""
        for number, sketch in enumerate(self.sketches):
            gates = [each for each in self.sketches[:number] if each.kind == "gate"]
            if sketch.kind == "effect" and gates and self.rng.random() < self.knobs.guarded:
                self.rng.choice(gates[-2:]).allows.append(sketch.name)

    def _reads(self, number: int, most: int = 4) -> list[str]:
        known = [*self.inputs, *self.plain, *self.boxes]
        if self.rng.random() < self.knobs.lists:
            known += self.lists
        if self.rng.random() < 0.1:
            known += ["feedback"]
        recent = list(self.more)[-self.knobs.width :]
        return self.rng.sample([*known, *recent], self.rng.randint(1, most))

    def _body(self, number: int, sketch: Sketch) -> str:
        if sketch.kind == "gate":
            return self._gate(number, sketch)
        if sketch.kind == "effect":
            return self._effect(number, sketch)
        return self._step(number, sketch)

    def _step(self, number: int, sketch: Sketch) -> str:
        looks = self.rng.random() < self.knobs.world
        reads = self._reads(number)
        value = f"v % {self.rng.choice(self.knobs.range)}"
        what = self._written(number, reads, value)
        lines = [f"v = mix({', '.join([repr(sketch.name), *reads, *['WORLD.weather'] * looks])})"]
        roll = self.rng.random()
        later = [each.name for each in self.sketches[number + 2 :]]
        if roll < self.knobs.loops and number:
            counter = f"c{number}"
            self.more[counter] = "int = 0"
            reads.append(counter)
            back = self.sketches[self.rng.randrange(max(0, number - 5), number + 1)].name
            lines.append(f"if {counter} < {self.rng.randint(1, 2)}:")
            lines.append(f'    return Jump("{back}", {{"{counter}": {counter} + 1}})')
        elif roll < self.knobs.loops + self.knobs.jumps and later:
            lines.append(f"if v % {self.rng.randint(2, 4)} == 0:")
            lines.append(f'    return Jump("{self.rng.choice(later[:6])}", {what})')
        elif roll < self.knobs.loops + self.knobs.jumps + self.knobs.ends:
            lines += [f"if v % {self.rng.randint(3, 9)} == 0:", f"    return Done({what})"]
        lines.append(f"return {what}")
        said = ["reads_world=True"] * looks
        judged = bool(self.knobs.judged) and self.rng.random() < self.knobs.judged
        rings = self.rng.randint(0, 2) if judged else 0
        said += [f'validators=["judge_{sketch.name}"], rings={rings}, tries={3 - rings}'] * judged
        text = _method(f"step({', '.join(said)})" if said else "step", sketch.name, self._signature(reads), lines)
        judge = [f'return WORLD.judge("{sketch.name}")']
        return text + (
            "\n" + _method("validator", f"judge_{sketch.name}", self._signature(reads[:1]), judge) if judged else ""
        )

    def _written(self, number: int, reads: list[str], value: str) -> str:
        roll = self.rng.random()
        if roll < self.knobs.lists:
            grown = self.rng.choice(self.lists)
            if roll < self.knobs.lists / 2 or grown in reads:
                return f'{{"{grown}": Append([{value}])}}'
            return f'{{"{grown}": Splice(0, 0, [{value}])}}'
        if roll < self.knobs.lists + 0.1:
            return f'{{"{self.rng.choice(self.boxes)}": Box(n={value})}}'
        first, second = self.rng.sample(self.plain, 2)
        return f'{{"{first}": {value}, "{second}": v % 2}}' if self.rng.random() < 0.25 else f'{{"{first}": {value}}}'

    def _effect(self, number: int, sketch: Sketch) -> str:
        reads = self._reads(number, 3)
        guarded = any(sketch.name in each.allows for each in self.sketches)
        undoable = self.rng.random() >= self.knobs.irreversible
        receipt = f"r{number}"
        keyed = self.rng.random() < self.knobs.keyed
        self.more[receipt] = 'str = ""'
        said = f'undo="undo_{sketch.name}"' if undoable else "irreversible=True"
        said += f', responds="{receipt}"' if guarded and self.knobs.several and self.rng.random() < 0.5 else ""
        given = "key" if keyed else f'str(mix("{sketch.name}", {", ".join(reads)}) % 5)'
        lines = [f'WORLD.do("{sketch.name}", key)', f'return {{"{receipt}": {given}}}']
        signature = f"{self._signature(reads)}, *, key: str"
        text = _method(f"effect({said}, guarded={guarded})", sketch.name, signature, lines)
        if undoable:
            undo = [f'WORLD.undo("{sketch.name}", key)']
            text += "\n" + _method("", f"undo_{sketch.name}", f"{receipt}: str, *, key: str", undo)
        return text

    def _gate(self, number: int, sketch: Sketch) -> str:
        box = self.rng.choice(self.boxes)
        reads = [box, *(each for each in self._reads(number, 3) if each != box)]
        said = [f"allows={sketch.allows!r}"] * bool(sketch.allows)
        edits = self.rng.random() < 0.7
        said += [f'edits=["{box}"]'] * edits
        before = [each.name for each in self.sketches[:number] if each.kind == "step"]
        said += [f'on_reject="{self.rng.choice(before[-4:])}"'] * bool(before)
        beside = bool(self.knobs.beside) and self.rng.random() < self.knobs.beside
        said += ["waits=False"] * beside
        if self.knobs.expiring and not beside and self.rng.random() < self.knobs.expiring:
            said += [f'on_expire="{self.rng.choice(self.sketches).name}"']
        if self.knobs.observing and sketch.allows and self.rng.random() < self.knobs.observing:
            said += ['observes=["outlook"]']
            still = ', preconditions=[Precondition(id="p", label="{value}", observes="outlook", required=True)]'
        else:
            still = ""
        named = f', effect="{sketch.allows[0]}"' if sketch.allows and self.rng.random() < 0.6 else ""
        first = f'Action(id="a", pointer="/{box}"{named}{self._heard(edits)})'
        actions = ", ".join([first, *self._others(sketch.allows[1:] if named else sketch.allows)])
        card = f'return Card(title="{sketch.name}", actions=[{actions}]{still})'
        lines = [card]
        if not sketch.allows and self.rng.random() < self.knobs.passing:
            lines = [f'if mix("{sketch.name}", {", ".join(reads)}) % 2:', "    return None", card]
        return _method(f"gate({', '.join(said)})", sketch.name, self._signature(reads), lines)

    def _others(self, effects: Sequence[str]) -> list[str]:
        """Write an action for each of some more effects, where gates ask about several things."""
        named = [name for name in effects if self.knobs.several and self.rng.random() < self.knobs.several]
        return [f'Action(id="b{n}", effect="{name}"{self._heard(False)})' for n, name in enumerate(named)]

    def _heard(self, edits: bool) -> str:
        """Write the verdicts, where people may answer in an effect's place."""
        offered = ["approve", *["edit"] * edits, "reject", "respond"]
        return f", verdicts={offered}" if self.knobs.several else ""

    def _signature(self, reads: list[str]) -> str:
        kinds = dict.fromkeys(self.lists, "list[int]") | dict.fromkeys(self.boxes, "Box")
        kinds |= {"feedback": "list[dict[str, Any]]"} | {name: "str" for name in self.more if name[0] == "r"}
        return ", ".join(f"{name}: {kinds.get(name, 'int')}" for name in reads)


def _method(decorator: str, name: str, signature: str, lines: list[str]) -> str:
    head = [f"    @{decorator}"] if decorator else []
    body = [f"        {line}" for line in lines]
    takes = f"self, {signature}" if signature else "self"
    return "\n".join([*head, f"    def {name}({takes}) -> Any:", f'        """{name}."""', *body, ""])


def load(folder: Path, seed: int, knobs: Knobs | None = None, *, name: str = "") -> type[Agent]:
    name = name or f"made-{seed}"
    module_name = f"random_agent_{name.replace('-', '_')}"
    path = folder / f"{module_name}.py"
    path.write_text(Maker(seed, knobs or Knobs()).source(name))
    spec = importlib.util.spec_from_file_location(module_name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    spec.loader.exec_module(module)
    made: type[Agent] = module.Made
    return made


def forget(agent: type[Agent]) -> None:
    sys.modules.pop(agent.__module__, None)


def random_input(rng: random.Random) -> dict[str, Any]:
    return {f"x{n}": rng.randrange(5) for n in range(3)}


def random_value(rng: random.Random, old: Any) -> Any:
    """Make another value of the same kind."""
    makers: dict[type, Callable[[], Any]] = {
        int: lambda: rng.randrange(5),
        list: lambda: [rng.randrange(5) for _ in range(rng.randrange(4))],
        dict: lambda: {"n": rng.randrange(5)},
        str: lambda: str(rng.randrange(5)),
    }
    while (made := makers[type(old)]()) == old:
        pass
    return made
