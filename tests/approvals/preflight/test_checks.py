"""The checks themselves, over plain facts: each in each of its colours."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from approvals.preflight import (
    NOBODY,
    AgentCode,
    EnvironmentFacts,
    Library,
    Preflight,
    SavedCheckpoint,
    Takeover,
    UnknownCode,
    run_preflight,
)

SAVED = SavedCheckpoint(seq=12)
CODE = AgentCode(agent="porter", version="1", deployed=True, environment=EnvironmentFacts())
GONE = AgentCode(agent="porter", version="1", newest="2", lacks=("propose",))
TAKEN = replace(GONE, takeover=Takeover(version="2", upcasters=("from_1",)), environment=EnvironmentFacts())
NUMPY = Library(name="numpy", recorded="2.1.0", now="2.1.0")


def found(saved: SavedCheckpoint = SAVED, code: AgentCode | UnknownCode = CODE) -> dict[str, tuple[str, str]]:
    """Check -> (colour, words)."""
    return {each.check: (each.colour, each.words) for each in run_preflight(saved, code).findings}


def with_environment(**facts: Any) -> AgentCode:
    return replace(CODE, environment=EnvironmentFacts(**facts))


@pytest.mark.parametrize(
    ("saved", "code", "check", "colour", "words"),
    [
        (
            replace(SAVED, fault="its digest differs"), CODE, "checkpoint", "red",
            "Checkpoint 12 does not verify: its digest",
        ),
        (
            SAVED, GONE, "version", "red",
            "version 2 is, and has no step propose. Write an upcaster from 1 to 2, or deploy",
        ),
        (SAVED, replace(GONE, lacks=()), "version", "red", "version 2 is. Write an upcaster from 1 to 2"),
        (SAVED, replace(GONE, lacks=("a", "b", "c", "d", "e")), "version", "red", "no steps a, b, c and 2 more"),
        (SAVED, AgentCode(agent="porter", version="1", changed=True), "version", "red", "changed since the run began"),
        (SAVED, TAKEN, "version", "amber", "Version 2 takes the run: its upcaster from_1 runs first."),
        (SAVED, NOBODY, "version", "amber", "was not checked here"),
        (SAVED, UnknownCode("No version of porter is known"), "version", "amber", "No version of porter is known"),
        (
            SAVED, replace(CODE, faults=("/text: is no text",)), "state", "red",
            "does not fit version 1: /text: is no text",
        ),
        (SAVED, replace(CODE, doubts=("/: too old",)), "state", "amber", "the whole does not: /: too old"),
        (SAVED, TAKEN, "state", "green", "What the upcasters make of the state fits the schema of version 2."),
        (SAVED, with_environment(configured=True), "configuration", "green", "is the recorded one"),
        (SAVED, with_environment(configured=True, recorded=False), "configuration", "amber", "No configuration was"),
        (SAVED, with_environment(configured=True, changed=("limit",)), "configuration", "amber", "limit differs"),
        (SAVED, with_environment(fault="/limit: is no number"), "configuration", "red", "/limit: is no number"),
        (SAVED, with_environment(libraries=(NUMPY,)), "libraries", "green", "numpy 2.1.0, as recorded"),
        (
            SAVED, with_environment(libraries=(replace(NUMPY, now="2.3.1"),)), "libraries", "amber",
            "numpy was 2.1.0 when the run started and is 2.3.1 here.",
        ),
        (
            SAVED, with_environment(libraries=(replace(NUMPY, now=None),)), "libraries", "red",
            "Not installed here: numpy 2.1.0",
        ),
        (replace(SAVED, artifacts=2), CODE, "artifacts", "green", "2 artifacts that the state names can be found."),
        (
            replace(SAVED, artifacts=2, missing=("/scan",)), CODE, "artifacts", "red",
            "1 artifact of the state cannot be",
        ),
    ],
)  # fmt: skip
def test_a_check_says_what_it_found(
    saved: SavedCheckpoint, code: AgentCode | UnknownCode, check: str, colour: str, words: str
) -> None:
    told = found(saved, code)[check]
    assert told[0] == colour
    assert words in told[1]


def test_a_takeover_that_cannot_work_is_red_and_nothing_else_of_the_code_is_said() -> None:
    lacking = Takeover(version="2", upcasters=("from_1",), lacks=("propose",))
    broken = Takeover(version="2", upcasters=("from_1",), fault="from_1 raised KeyError.")
    for takeover, words in ((lacking, "Its upcaster from_1 names no other"), (broken, "cannot take the run: from_1")):
        told = found(code=replace(GONE, takeover=takeover, environment=EnvironmentFacts()))
        assert set(told) == {"checkpoint", "version", "artifacts"}
        assert told["version"][0] == "red"
        assert words in told["version"][1]


def test_the_gravest_finding_decides_and_comes_first() -> None:
    flight = run_preflight(SAVED, replace(with_environment(configured=True, changed=("limit",)), faults=("/text: no",)))
    assert flight.red
    assert flight.title == "Not ready"
    assert [(each.colour, each.check) for each in flight.reasons] == [("red", "state"), ("amber", "configuration")]
    assert [each.colour for each in flight.in_order] == ["red", "amber", "green", "green", "green", "green"]


def test_all_is_one_calm_line_where_it_is_well_and_never_green_where_it_was_not_looked_at() -> None:
    flight = run_preflight(SAVED, CODE)
    assert (flight.colour, flight.title, flight.reasons) == ("green", "Ready: 6 checks passed", [])
    checks = ["checkpoint", "version", "state", "configuration", "libraries", "artifacts"]
    assert [each.check for each in flight.findings] == checks
    flight = run_preflight(SAVED, NOBODY)
    assert (flight.colour, flight.title) == ("amber", "The agent's code was not checked here")
    assert run_preflight(SAVED, TAKEN).title == "Ready, 1 warning"
    assert Preflight(()).colour == "amber"
