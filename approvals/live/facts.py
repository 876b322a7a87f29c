"""Turns an event into the fact that open pages hear, and finds its audience. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

from checkpoints.events.commit_order import Cursor
from checkpoints.models import Event, Run
from checkpoints.values import canonical_json

# Kinds of which only pages that show the subject hear: too many for all, or without effect on lists.
QUIET = frozenset(
    {
        "checkpoint.saved", "checkpoint.noted", "checkpoint.note_removed", "gate.remarked", "gate.question",
        "gate.answered", "gate.unanswered", "gate.mentioned",
    }
)  # fmt: skip
# Kinds that answer those who wait for a signal of the run; a busy run has many other events.
OF_SIGNALS = frozenset({"signal.received", *(f"run.{status}" for status in Run.Status if status not in Run.LIVE)})


class Fact(TypedDict):
    """A fact: the kind and the subject of an event, never content."""

    cursor: str
    kind: str
    subject: str
    run: str
    version: int
    title: str


def fact_of(event: Event, titles: Mapping[str, str]) -> Fact:
    """Return an event as a fact. `titles`: subject -> title, which events do not hold, since titles name people."""
    return {
        "cursor": str(Cursor.of(event)),
        "kind": event.kind,
        "subject": event.subject,
        "run": f"run:{event.run_id}" if event.run_id else "",
        "version": event.version,
        "title": titles.get(event.subject, ""),
    }


def audience(event: Event) -> list[str]:
    """List the groups that may hear of an event: its team, its gate's reviewers, and pages that watch its subject."""
    groups = []
    if event.kind not in QUIET and event.team_id:
        groups.append(f"team.{event.team_id}")
    if event.subject.startswith("gate:"):
        groups += [f"reviewers.{group}" for group in reviewers_of(event) if event.kind not in QUIET]
        groups.append(event.subject.replace(":", "."))
    if event.run_id:
        groups.append(f"run.{event.run_id}")
        if event.kind in OF_SIGNALS:
            groups.append(f"signals.{event.run_id}")
    return groups


def reviewers_of(event: Event) -> list[int]:
    """List the groups whose members review the event's gate."""
    found = data_of(event).get("reviewers", [])
    return [group for group in found if isinstance(group, int)] if isinstance(found, list) else []


def data_of(event: Event) -> dict[str, object]:
    found = canonical_json.decode(bytes(event.data))
    return found if isinstance(found, dict) else {}
