"""Which version takes a run whose own is gone, and what an upcaster may not be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel

from agents import Agent, step, upcast
from agents.definition.plan_builder import plan_of
from agents.definition.registered import RegisteredAgent
from agents.definition.upcast import UpcastPath, apply, check, way
from agents.errors import AgentError, UpcastFailed
from checkpoints.runs.plans import PlanSpec

Body = dict[str, Any]
Known = dict[tuple[str, str], RegisteredAgent]


class State(BaseModel):
    words: list[str] = []


@step
def say(self: Agent, words: list[str]) -> Body:
    return {"words": words}


def moving(since: str, to: str, **steps: str) -> Any:
    """An upcaster that says where it has been."""

    def method(cls: type[Agent], state: Body) -> Body:
        return {"words": [*state["words"], f"{since}-{to}"]}

    return classmethod(upcast(since, steps=steps)(method))


def version(number: str, *bases: type[Agent], **body: Any) -> RegisteredAgent:
    """An agent's version, registered."""
    attributes: Body = {"name": "walker", "version": number, "State": State, **({} if bases else {"say": say}), **body}
    made: Any = type("Walker", bases or (Agent,), attributes)
    check(made, plan_of(made))
    return RegisteredAgent(made, plan_of(made))


def known(*each: RegisteredAgent) -> Known:
    return {(one.spec.agent, one.spec.version): one for one in each}


def led(since: str, among: Known) -> list[str] | None:
    """The upcasters' moves from a version, in order."""
    found = way(PlanSpec("walker", since), among)
    return None if found is None else [f"{each.since}-{each.to}" for each in found.upcasters]


def test_a_run_is_led_to_the_newest_version_that_can_be_reached_on_the_shortest_way() -> None:
    second, third = version("2", up=moving("1", "2")), version("3", up=moving("2", "3"))
    assert led("1", known(second, third)) == ["1-2", "2-3"]
    assert led("2", known(third)) == ["2-3"]
    assert led("1", known(third)) is None
    assert led("0", known(second, third)) is None
    assert led("1", known(version("1"), second)) is None, "one whose version is registered stays with it"
    ninth, tenth, eleventh = version("9", up=moving("1", "9")), version("10", up=moving("1", "10")), version("11")
    assert led("1", known(ninth, tenth, eleventh)) == ["1-10"]
    third = version("3", up=moving("2", "3"), over=moving("1", "3"))
    assert led("1", known(second, third)) == ["1-3"]


def test_an_inherited_upcaster_leads_to_the_version_of_its_own_class_and_a_mixins_to_the_agent_that_takes_it_in() -> (
    None
):
    class Upcasters:
        up = moving("1", "2")

    second = version("2", Upcasters, Agent, say=say)  # type: ignore[arg-type]
    assert led("1", known(second)) == ["1-2"]
    third = version("3", version("2", up=moving("1", "2")).agent, over=moving("2", "3"))
    assert led("1", known(third)) == ["1-2", "2-3"]


def found(among: Known) -> UpcastPath:
    made = way(PlanSpec("walker", "1"), among)
    assert made is not None
    return made


def test_steps_are_called_what_the_last_upcaster_calls_them() -> None:
    second = version("2", up=moving("1", "2", ask="speak"), speak=say)
    path = found(known(second, version("3", up=moving("2", "3", speak="say"))))
    assert (path.step("ask"), path.step("say"), path.step("")) == ("say", "say", "")
    assert path.lacks(["ask", "shout", ""]) == ["shout"]
    assert path.renamed(["ask", "say"]) == {"ask": "say"}


def test_a_state_goes_through_every_upcaster_and_stays_as_it_was() -> None:
    among = known(version("2", up=moving("1", "2")), version("3", up=moving("2", "3")))
    before = {"words": ["hello"]}
    assert apply(found(among), before) == {"words": ["hello", "1-2", "2-3"]}
    assert before == {"words": ["hello"]}
    second = version("2", up=classmethod(upcast("1")(lambda cls, state: {})))
    assert apply(found(known(second)), {"words": []}) == {}, "what nobody wrote stays out"


@pytest.mark.parametrize(
    ("method", "words"),
    [
        (lambda cls, state: None, "returned NoneType; an upcaster returns the whole state"),
        (lambda cls, state: {"words": 7}, "/words: Input should be a valid list"),
        (lambda cls, state: {"words": [], "more": 1}, "/more: version 2 has no such field"),
        (lambda cls, state: {"words": [1 / 0]}, "raised ZeroDivisionError: division by zero"),
    ],
)
def test_what_an_upcaster_does_wrong_is_named(method: Callable[..., Any], words: str) -> None:
    second = version("2", up=classmethod(upcast("1")(method)))
    with pytest.raises(UpcastFailed, match=words):
        apply(found(known(second)), {"words": []})


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"up": upcast("1")(lambda cls, state: state)}, "up is an upcaster but not a class method"),
        ({"up": moving("2", "2")}, "from 2 to itself"),
        ({"up": moving("1", "2"), "over": moving("1", "2")}, "the second upcaster from 1 to 2"),
        ({"up": moving("1", "2", ask="speak")}, "now called speak, which is not a step of the agent"),
    ],
)
def test_an_upcaster_that_could_not_work_is_refused_when_its_agent_is_registered(body: Body, words: str) -> None:
    with pytest.raises(AgentError, match=words):
        version("2", **body)
