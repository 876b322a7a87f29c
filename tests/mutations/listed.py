"""The mutations that were drawn, in mutations.json beside this: each one's place, change and what the tests made of it.

After a rename, write the new module, function or source into the list; where the place is gone for good, write why
into `gone`.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from tests.mutations.sites import Place, find_sites, locate_site, replace_source

ROOT = Path(__file__).resolve().parent.parent.parent
LIST = Path(__file__).with_name("mutations.json")
FOLDERS = ("agents", "approvals", "checkpoints", "config", "clients/python/src/holdpoint")
LEFT_OUT = {"migrations", "examples", "formats", "text.py", "english.py", "template_loader.py"}  # translation goes
GOING = ("merge3", "gevent")  # libraries of modules that will be rewritten


@dataclass
class Mutation:
    """One change at one site. `caught_by`: the first test that failed; `note`: why none fails, or how."""

    number: int
    module: str
    function: str
    operator: str
    before: str
    after: str
    occurrence: int = 0
    caught_by: str = ""
    escaped: bool = False
    note: str = ""
    gone: str = ""
    migrates: bool = False  # migrating comes by

    def find(self, root: Path) -> tuple[str, Place]:
        """Return the module's text in the tree at `root`, and the node of the site. Raises Gone."""
        path = root / self.module
        source = path.read_text() if path.exists() else ""
        return source, locate_site(source, self.function, self.operator, self.before, self.occurrence)

    def write(self, root: Path, text: str) -> str:
        source, node = self.find(root)
        (root / self.module).write_text(replace_source(source, node, text))
        return source


def read() -> list[Mutation]:
    return [Mutation(**entry) for entry in json.loads(LIST.read_text())["mutations"]]


def write(mutations: Sequence[Mutation], seed: int | None = None) -> None:
    if seed is None:
        seed = json.loads(LIST.read_text())["seed"]
    entries = [{name: value for name, value in asdict(mutation).items() if value} for mutation in mutations]
    LIST.write_text(json.dumps({"seed": seed, "mutations": entries}, indent=1, ensure_ascii=False) + "\n")


def draw(seed: int, count: int) -> list[Mutation]:
    """Draw mutations at random: rooms by their size, then an operator, then a site; no function twice."""
    chance = random.Random(seed)
    rooms: dict[str, dict[str, list[Mutation]]] = defaultdict(lambda: defaultdict(list))
    sizes = defaultdict[str, int](int)
    for path in sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")):
        source, module = path.read_text(), path.relative_to(ROOT)
        if LEFT_OUT.isdisjoint(module.parts) and not any(word in source for word in GOING):
            room = str(module.parent)
            sizes[room] += len(source.splitlines())
            for site in find_sites(source):
                rooms[room][site[1]].append(Mutation(0, str(module), *site))
    step, passed, taken = sum(sizes.values()) / count, 0.0, set[tuple[str, str]]()
    points = [(index + chance.random()) * step for index in range(count)]
    drawn = list[Mutation]()
    for room, size in sizes.items():
        passed += size
        while points and points[0] < passed and rooms[room]:
            mutation = chance.choice(rooms[room][chance.choice(sorted(rooms[room]))])
            if (mutation.module, mutation.function) not in taken:
                points.pop(0)
                taken.add((mutation.module, mutation.function))
                drawn.append(replace(mutation, number=len(drawn) + 1))
    return drawn
