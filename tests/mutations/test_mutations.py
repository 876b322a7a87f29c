"""A mutation is planted where it was drawn, wherever that has moved, and it is said when its place has vanished."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.mutations.listed import Mutation
from tests.mutations.planting import sort_by_nearness
from tests.mutations.probing import plant_probes, read_reached
from tests.mutations.sites import Gone, find_sites

TOY = '''"""Counts."""
from __future__ import annotations

class Counter:
    """A docstring of 3 words."""

    def enough(self, votes: list[int], needed: int = 2) -> bool:
        log.info("Counted %s", len(votes) > 1)
        if len(votes) >= needed and \\
                not self.closed:  # é: columns are counted in bytes
            self.closed = True
            return True
        return False
'''
ENOUGH = "len(votes) >= needed"


def mutation(before: str, after: str, operator: str = "comparison") -> Mutation:
    return Mutation(1, "toy.py", "Counter.enough", operator, before, after)


def planted(folder: Path, source: str, change: Mutation) -> str:
    (folder / "toy.py").write_text(source)
    change.write(folder, change.after)
    return (folder / "toy.py").read_text()


def test_each_operator_finds_its_sites_and_leaves_messages_defaults_and_docstrings_alone() -> None:
    both = f"{ENOUGH} and (not self.closed)"
    assert [(operator, before, after) for _, operator, before, after, _ in find_sites(TOY)] == [
        ("and for or", both, f"{ENOUGH} or not self.closed"),
        ("operand dropped", both, "not self.closed"),
        ("operand dropped", both, ENOUGH),
        ("condition constant", both, "True"),
        ("condition constant", both, "False"),
        ("comparison", ENOUGH, "len(votes) > needed"),
        ("not removed", "not self.closed", "self.closed"),
        ("assignment removed", "self.closed = True", "pass"),
        ("return value", "return True", "return False"),
        ("return value", "return False", "return True"),
    ]


def test_a_mutation_changes_its_place_wherever_that_has_moved_and_nothing_else(tmp_path: Path) -> None:
    moved = TOY.replace("class", "import os\n\n\nclass").replace("        if", "        other = 1\n        if")
    for source in (TOY, moved):
        changed = planted(tmp_path, source, mutation(ENOUGH, "len(votes) > needed"))
        assert changed == source.replace(ENOUGH, "(len(votes) > needed)")
    assert "            pass\n" in planted(tmp_path, TOY, mutation("self.closed = True", "pass", "assignment removed"))


@pytest.mark.parametrize("source", [TOY.replace(ENOUGH, "sum(votes)"), TOY.replace("def enough", "def is_enough"), ""])
def test_a_place_that_has_vanished_is_named(tmp_path: Path, source: str) -> None:
    with pytest.raises(Gone, match=r"Counter.enough has 0 times `len\(votes\) >= needed`"):
        planted(tmp_path, source, mutation(ENOUGH, "len(votes) > needed"))
    assert (tmp_path / "toy.py").read_text() == source


def test_a_probe_writes_when_its_place_is_passed_and_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "toy.py").write_text(TOY.replace('log.info("Counted %s", len(votes) > 1)', "pass"))
    plant_probes([mutation(ENOUGH, "")], tmp_path, tmp_path / "passed")
    names: dict[str, type] = {}
    exec((tmp_path / "toy.py").read_text(), names)  # noqa: S102 - the toy
    counter = names["Counter"]()
    counter.closed = False
    assert [counter.enough([1]), counter.enough([1, 2]), counter.enough([1, 2])] == [False, True, False]
    assert (tmp_path / "passed").read_text().startswith("1 ")


def test_a_test_reaches_what_is_passed_on_its_worker_while_it_runs() -> None:
    ended = [["tests/a.py::first", 1, 2, "gw0", False], ["tests/a.py::second", 2.5, 4, "gw0", False]]
    ended += [["tests/b.py::third", 1.5, 3, "gw1", False], ["tests/b.py::broken", 3, 5, "gw1", True]]
    passed = "7 0.5 \n8 1.7 gw0\n8 3.5 gw1\n9 2.6 \n"
    reached, early = read_reached(passed, "\n".join(map(json.dumps, ended)))
    assert {number: [*tests] for number, tests in reached.items()} == {
        8: ["tests/a.py::first"],
        9: ["tests/a.py::second", "tests/b.py::third"],
    }
    assert early == {7}


def test_the_tests_of_the_same_room_are_run_first_and_the_slowest_not_at_all() -> None:
    tests = {"tests/agents/runs/test_b.py::slow": 599.0, "tests/agents/test_c.py::one": 0.1}
    tests |= {"tests/config/test_d.py::two": 0.1, "tests/agents/runs/test_a.py::three": 2.0}
    assert sort_by_nearness(tests, "agents/runs/query.py") == [
        "tests/agents/runs/test_a.py::three",
        "tests/agents/runs/test_b.py::slow",
    ]
