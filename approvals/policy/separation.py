"""Separation of duties: whoever wrote what a gate asks about does not decide it, nor does who asks.

That is the person who started the run, who owns the token that asks, and the authors of the state (see below).
The rule is written here twice, for one gate and in SQL for many, and nowhere else.

Also here: authorship: the people who wrote what a gate asks about, beside the agent.

A gate asks about a saved state. People write into it where they edit a run or fork it with another state, send it a
signal, answer or edit at a gate of another step, have a program of theirs work on a run that somebody else started, or
have started the run of which this is a fork or a child, or one that keeps the agent's thread from which it comes. They
are found along the path to the gate's checkpoint, so an edit that a rewind left behind counts no more, and one that a
later edit took back still does: what ran in between has read it. What a program wrote counts on any branch. Of a run
that this one started, or that started this one, whatever people wrote before its state came here counts, on whichever
branch.

A verdict and its reasons are no authorship: whoever sends a proposal back decides on the next one too. So is an edit at
a gate of the same step, as it was a decision on that very question.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from approvals.cards.card import Card, card_of
from approvals.engine_rules import permissions
from approvals.models import Gate, Policy
from checkpoints.errors import NoSuchCheckpoint
from checkpoints.models import Run
from checkpoints.postgresql.sql import run_sql
from checkpoints.store import executions
from checkpoints.store.loading import CheckpointHeader
from checkpoints.values.canonical_json import decode_canonical
from checkpoints.values.checkpoint_kinds import Kind

STARTED, EDITED, FORKED, SIGNALLED = "started", "edited", "forked", "signalled"
ANSWERED, WORKED = "answered", "worked"
_PERSON = "user:"
# The runs from which the state may come: those on the path through forks, `line`; whatever started them; what they
# started themselves, as far as it had ended; and those that keep a graph's thread of that name. `until`: when their
# state came here. The web server's clock dates runs and the database's events, so a minute more counts: somebody too
# many is apart rather than one too few.
_SOURCES = f"""
WITH RECURSIVE source(id, parent, origin, began, starter, until, line, down) AS (
  SELECT id, parent_id, forked_from, created_at, started_by_id, coalesce($2::timestamptz, 'infinity'), id = $1,
    false
  FROM checkpoints_run WHERE id IN (
    SELECT $1::bigint UNION ALL
    SELECT r.id FROM checkpoints_run r JOIN checkpoints_plan p ON p.id = r.plan_id AND p.agent = $5
    WHERE r.team_id = $4 AND r.thread = $6 AND r.thread <> '' AND starts_with(r.key, 'thread:')
  )
  UNION
  SELECT r.id, r.parent_id, r.forked_from, r.created_at, r.started_by_id, near.until, near.line, near.down
  FROM source s CROSS JOIN LATERAL (
    SELECT s.parent AS id, s.began + interval '1 minute' AS until, false AS line, false AS down WHERE NOT s.down
    UNION ALL
    SELECT c.run_id, s.began + interval '1 minute', s.line, s.down FROM checkpoints_checkpoint c WHERE c.id = s.origin
    UNION ALL
    SELECT (convert_from(e.data, 'UTF8')::jsonb ->> 'child')::bigint, s.until, false, true FROM checkpoints_event e
    WHERE e.run_id = s.id AND e.kind = 'child.started' AND e.kind <> 'checkpoint.saved' AND e.at <= s.until
  ) near JOIN checkpoints_run r ON r.id = near.id AND (NOT near.down OR r.finished_at <= near.until)
)
SELECT CASE WHEN origin IS NULL THEN '{STARTED}' ELSE '{FORKED}' END, '{_PERSON}' || starter, id, line, began,
  NULL::bytea, NULL::bytea, NULL::bytea, 0::bigint, NULL::uuid, ''
FROM source WHERE starter IS NOT NULL AND NOT down AND (id <> $1 OR origin IS NOT NULL)
UNION ALL
SELECT CASE e.kind WHEN 'run.edited' THEN '{EDITED}' WHEN 'program.joined' THEN '{WORKED}' ELSE '{SIGNALLED}' END,
  e.actor, s.id, s.line, e.at, e.data, NULL, NULL, 0, NULL, ''
FROM source s JOIN checkpoints_event e ON e.run_id = s.id AND e.kind <> 'checkpoint.saved' AND e.at <= s.until
  AND e.kind IN ('run.edited', 'signal.received', 'program.joined')
UNION ALL
SELECT '{ANSWERED}', '{_PERSON}' || p.by_id, s.id, s.line, o.created_at,
  o.answer, p.patch, p.body, g.id, g.checkpoint, g.kind
FROM source s JOIN approvals_gate g ON g.run_id = s.id AND NOT (s.line AND g.step = $3)
JOIN approvals_outcome o ON o.gate_id = g.id AND o.kind IN ('{"', '".join(permissions.AGREED)}')
  AND o.created_at <= s.until
JOIN approvals_proposal last ON last.id = o.proposal_id
JOIN approvals_proposal p ON p.gate_id = g.id AND p.number <= last.number AND p.by_id IS NOT NULL
ORDER BY 5, 3
"""  # noqa: S608 - constants


@dataclass(frozen=True, kw_only=True)
class Contribution:
    """Something that one person wrote into the state that a gate asks about."""

    what: str
    person: int
    run: int
    at: int = 0  # the number of the checkpoint that was edited, or forked from
    saved: CheckpointHeader | None = None  # where the edited state was saved; None where that is off the gate's path
    name: str = ""  # of a signal
    gate: int = 0  # at which they answered


def contributions(run: Run, checkpoint: UUID, step: str, *, before: datetime | None = None) -> list[Contribution]:
    """List what people wrote into a state, oldest first; of the gates on its path, those of `step` do not count.

    `run` may be one that is about to be written. `before`: when its gate was opened; None for now. One statement, and
    another where the run was moved.
    """
    read = run_sql(_SOURCES, [run.pk or 0, before, step, run.team_id, run.plan.agent, run.thread])
    by_path = any(line and what in (EDITED, FORKED, ANSWERED) for what, _, _, line, *_ in read)
    path = executions.path(checkpoint) if by_path else []
    answered = set(permissions.asked_on(path)[0])
    edits = {(each.run_id, each.seq): each for each in path if each.kind == Kind.EDIT}
    forks = {each.run_id: each for each in path if each.kind == Kind.FORK}
    numbers = {each.id: each.seq for each in path}
    found: dict[Contribution, None] = {}
    for what, actor, source, line, _, data, patch, body, gate, asked_at, kind in read:
        facts: Any = decode_canonical(bytes(data)) if data else None
        person = _person(actor) or (_person(facts.get("owner", "")) if what == SIGNALLED else 0)
        if not person or (what == STARTED and person == run.started_by_id):
            continue
        made = Contribution(what=what, person=person, run=source)
        if what == EDITED:
            saved = edits.get((source, facts["seq"])) if line else None
            if line and saved is None:
                continue
            made = Contribution(what=what, person=person, run=source, at=facts["to"], saved=saved)
        elif what == FORKED and (saved := forks.get(source)) is not None:
            at = numbers.get(saved.parent, 0) if saved.parent else 0
            made = Contribution(what=what, person=person, run=source, at=at, saved=saved)
        elif what == SIGNALLED:
            made = Contribution(what=what, person=person, run=source, name=facts["name"])
        elif what == ANSWERED:
            if (line and asked_at not in answered) or not _wrote(kind, facts, bytes(patch), bytes(body)):
                continue
            made = Contribution(what=what, person=person, run=source, gate=gate)
        found[made] = None
    return list(found)


def authors(run: Run, checkpoint: UUID, step: str, card: Card, *, before: datetime | None = None) -> list[int]:
    """List the ids of the people who wrote what a card asks about. A question about no action approves nothing."""
    if card.question is not None and not card.actions:
        return []
    return sorted({each.person for each in contributions(run, checkpoint, step, before=before)})


def authors_of(gate: Gate) -> Iterable[int]:
    """Return the authors of what a gate asks about; those of a gate that the release before opened are looked up."""
    if gate.authors is not None:
        return gate.authors
    if gate.wrote is None:  # beside the column, which events cover as it is
        try:
            gate.wrote = authors(gate.run, gate.checkpoint, gate.step, gate.asked, before=gate.opened_at)
        except NoSuchCheckpoint:  # removed by retention, so the gate is closed and nobody decides it
            gate.wrote = []
    return gate.wrote


def _person(actor: str) -> int:
    number = actor.removeprefix(_PERSON)
    return int(number) if number != actor and number.isdigit() else 0


def _wrote(kind: str, answer: Any, patch: bytes, body: bytes) -> bool:
    """Tell whether a proposal by a person has words or values of theirs, and not only their verdicts."""
    given = answer is not None and (kind == Gate.Kind.REVIEW or answer["value"] is not None)
    return (
        given
        or patch != b"[]"
        or any(each.settled and each.settled.response for each in card_of(body, external=lambda: False).actions)
    )


STARTED_IT = "You started this run, and its policy wants somebody else to decide."
ASKED_IT = "You own the token of the program that asks this. Its policy requires somebody else to decide."
WROTE_IT = "You wrote some of what this asks about: the page says where. Its policy requires somebody else to decide."

# True where a person (passed three times) may not decide the gate `g` under the policy `s`.
APART = """(s.separation AND (g.asked_by_id IS NOT DISTINCT FROM %s OR coalesce(%s = ANY(g.authors), false) OR EXISTS (
  SELECT FROM checkpoints_run r WHERE r.id = g.run_id AND r.started_by_id = %s)))"""


def apart(policy: Policy, *people: int | None) -> frozenset[int]:
    """Return those of the people behind a gate who may not decide it under the policy."""
    return frozenset(each for each in people if each is not None and policy.separation)


def apart_from(gate: Gate) -> frozenset[int]:
    """Return the ids of the people who may not decide this gate."""
    wrote = authors_of(gate) if gate.policy.separation else ()
    return apart(gate.policy, gate.run.started_by_id, gate.asked_by_id, *wrote)


def why_apart(person: int, gate: Gate) -> str:
    """Say why separation of duties bars this person from this gate; "" where it does not."""
    if person not in apart_from(gate):
        return ""
    if person == gate.asked_by_id:
        return str(ASKED_IT)
    return str(STARTED_IT if person == gate.run.started_by_id else WROTE_IT)
