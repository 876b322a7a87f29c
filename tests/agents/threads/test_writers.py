"""Whoever has a program write a graph's thread does not approve what the graph asks with it.

A reviewer put another account into a colleague's thread with a token of his own, and approved alone what the
colleague's graph asked from there: the gate's run begins as it is asked, and had no way to the thread's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from langgraph.checkpoint.base.id import uuid6

from approvals.presentation.gate_page import earlier
from checkpoints.models import Event, Run
from tests.agents.remote.gates.test_owners import of, why_not
from tests.agents.remote.gates.test_posting import posted
from tests.agents.remote.outside_program import Program
from tests.agents.threads.test_addresses import POSITION
from tests.factories import make_user, unique


@pytest.fixture
def program() -> Program:
    return Program()


@pytest.fixture
def bob(program: Program) -> User:
    return make_user("Bob Lindqvist", program.team)


def put(program: Program, thread: str, parent: str | None = None) -> str:
    """Save a checkpoint of a thread; its id."""
    id, state = str(uuid6()), {"langgraph": POSITION, "to": "ACME"}
    program.ok(
        program.post("threads/checkpoints", {"thread": thread, "id": id, "parent": parent, "set": state, "whole": True})
    )
    return id


def write(program: Program, thread: str, parent: str) -> None:
    """Keep the answer to an interrupt at a checkpoint, for whoever goes on with the thread."""
    body = {"thread": thread, "id": parent, "task": "t", "path": ""}
    resumed = {"number": -4, "channel": "__resume__", "value": "MALLORY"}
    program.ok(program.post("threads/writes", {**body, "writes": [resumed]}))


def run_of(thread: str, agent: str) -> Run:
    return Run.objects.get(thread=thread, plan__agent=agent, graph__namespace="")


@pytest.mark.parametrize("writes", [put, write])
def test_who_wrote_the_thread_is_apart(program: Program, bob: User, writes: Callable[[Any, str, str], Any]) -> None:
    thread = unique("chat")
    first = put(program, thread)
    writes(of(bob, program), thread, first)
    gate = posted(program, thread=thread)
    assert (gate.authors, bool(why_not(bob, gate))) == ([bob.pk], True)
    assert earlier.changes(gate) == [f"A program of Bob Lindqvist worked on R-{run_of(thread, program.agent).pk}"]
    assert not why_not(make_user("Mira Sandoval", program.team), gate)


def test_who_began_the_thread_is_apart_where_a_colleague_goes_on_and_recorded_once(program: Program, bob: User) -> None:
    thread, other, at = unique("chat"), of(bob, program), None
    for writer in (other, program, other, other):
        at = put(writer, thread, at)
    joined = Event.objects.filter(run_id=run_of(thread, program.agent).pk, kind="program.joined")
    assert [each.actor for each in joined] == [f"user:{program.owner.pk}"]  # type: ignore[union-attr]
    gate = posted(program, thread=thread)
    assert bob.pk in (gate.authors or ())
    assert why_not(bob, gate)


def test_a_copy_washes_nobody(program: Program, bob: User) -> None:
    thread, copy = unique("chat"), unique("copy")
    put(of(bob, program), thread, put(program, thread))
    program.ok(program.post("threads/copies", {"thread": thread, "to": copy}, key=unique("copy")))
    gate = posted(program, thread=copy)
    assert (gate.authors, bool(why_not(bob, gate))) == ([bob.pk], True)


def test_the_thread_of_one_owner_has_no_other_authors(program: Program, bob: User) -> None:
    """Nor do a thread of another name, one of another agent, and a name that is no thread's."""
    thread, other = unique("chat"), Program(team=program.team, owner=bob)
    put(program, thread, put(program, thread))
    put(other, thread)
    put(of(bob, program), unique("chat"))
    for named in (thread, unique("chat"), ""):
        gate = posted(program, thread=named)
        assert (gate.authors, earlier.changes(gate)) == ([], [])
    begun = run_of(thread, program.agent).pk
    assert not Event.objects.filter(run_id=begun, kind="program.joined").exists()
