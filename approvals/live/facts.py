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
# Kinds after which the server looks again what the pages of these people may hear; no page is told of them.
OF_ACCESS = frozenset(
    {
        "user.session_ended", "user.password_changed", "user.changed", "team.changed", "delegation.made",
        "delegation.ended",
    }
)  # fmt: skip


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
        "cursor": str(Cursor.from_event(event)),
        "kind": event.kind,
        "subject": event.subject,
        "run": f"run:{event.run_id}" if event.run_id else "",
        "version": event.version,
        "title": titles.get(event.subject, ""),
    }


def audience(event: Event) -> list[str]:
    """List the groups that may hear of an event: its team, its gate's reviewers, pages of its subject."""
    groups = _of_access(event) if event.kind in OF_ACCESS else []
    if event.kind not in QUIET and event.team_id:
        groups.append(f"team.{event.team_id}")
    if event.subject.startswith("gate:"):
        if event.kind not in QUIET:
            groups += [group for team in reviewers_of(event) for group in _of_reviewers(team, event)]
            for person in numbers_in(event, "named"):
                groups += [f"named.{person}", *_lent(f"named.{person}", event)]
        groups.append(event.subject.replace(":", "."))
    if event.run_id:
        groups.append(f"run.{event.run_id}")
        if event.kind in OF_SIGNALS:
            groups.append(f"signals.{event.run_id}")
    return groups


def _of_access(event: Event) -> list[str]:
    """List the groups of the people whose access an event changes, and of those who decide for them meanwhile.

    Who lost something is still in the groups that it gave them, as their pages have not looked again yet.
    """
    named = [str(subject).partition(":") for subject in (event.subject, data_of(event).get("delegate"))]
    people = [number for kind, _, number in named if kind == "user"]
    groups = []
    if event.kind == "team.changed":
        people += [str(person) for name in ("joined", "left") for person in numbers_in(event, name)]
        groups = [f"reviewers.{event.team_id}", f"lent.{event.team_id}"]
    return [f"{kind}.{person}" for person in people for kind in ("user", "lends")] + groups


def _of_reviewers(team: int, event: Event) -> list[str]:
    """List the groups of a team's reviewers, and of those who decide for them under this policy or in this team."""
    return [f"reviewers.{team}", *_lent(f"lent.{team}", event)]


def _lent(whose: str, event: Event) -> list[str]:
    policy = data_of(event).get("policy")
    return [f"{whose}.{event.team_id}.", f"{whose}..{policy}", f"{whose}.{event.team_id}.{policy}"] if policy else []


def reviewers_of(event: Event) -> list[int]:
    """List the groups whose members review the event's gate."""
    return numbers_in(event, "reviewers")


def numbers_in(event: Event, name: str) -> list[int]:
    """List the ids that an event's data has under a name."""
    found = data_of(event).get(name, [])
    return [each for each in found if isinstance(each, int)] if isinstance(found, list) else []


def data_of(event: Event) -> dict[str, object]:
    found = canonical_json.decode_canonical(bytes(event.data))
    return found if isinstance(found, dict) else {}
