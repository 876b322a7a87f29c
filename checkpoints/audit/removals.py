"""Checks gaps: whether a gap is unaltered, and whether an ordered prune removed the checkpoints that it replaces.

The application's role may write gaps and events, and without a key a forged gap has a valid digest. So a gap counts
only if it is sound by itself, an event of its removal names it (or the next gap of the same removal names it as the
previous one), and the prune in progress at that event was ordered by the same person under the policy of the gap. Or
it is in the run of an external agent, whose program ordered the removal itself: then an event of that order comes
before, of the same actor.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Any, NamedTuple

from checkpoints.events import event_proof
from checkpoints.models import Event, Gap, RetentionPolicy, Run
from checkpoints.seals.leaves import IntegrityProblem
from checkpoints.seals.seal import OTHERWISE, UNKNOWN, WITHOUT
from checkpoints.store import gaps
from checkpoints.values.canonical_json import decode_canonical

RUNS = 64  # runs whose removals are cached
NO_EVENT = "no event recorded it"
NO_ORDER = "no order of a prune stands behind it"


class JudgedGap(NamedTuple):
    """A gap with its `faults`, in its headers and its place, and its `doubts`, about who made it."""

    gap: Gap
    faults: list[str]
    doubts: list[str]


class _Order(NamedTuple):
    """An order to prune: its event, the person who gave it, the policies, and the event of the prune's end."""

    event: int
    actor: str
    policies: set[tuple[str, int]]
    finished: int | None


def judged(run_id: int) -> Iterator[JudgedGap]:
    """Yield a run's gaps in order, each with its faults and doubts."""
    known = Gap.objects.filter(run_id=run_id).order_by("number")
    light = list(known.defer("headers"))
    untold = _untold(run_id, light)
    before: Gap | None = None
    for gap in known.filter(number__in=list(untold)).iterator(chunk_size=20):
        yield JudgedGap(gap, gaps.faults(gap, before), [*_key_faults(gap), *untold[gap.number]])
        before = gap


def unreadable(run_id: int) -> list[IntegrityProblem]:
    """Report the events of this run's removals that do not name the gap that they left."""
    return [
        IntegrityProblem(f"event {event}", "tells of a removal without the gap that it left")
        for event, _, data in _removal_events(run_id)
        if _named(data) is None
    ]


class Removals:
    """A cache for one verification: by run, the checkpoints that sound gaps removed. A new gap renews a run's entry."""

    def __init__(self) -> None:
        self.known: dict[int, tuple[int, frozenset[bytes], list[str]]] = {}

    def digests_of(self, run_id: int, newest: int) -> tuple[frozenset[bytes], list[str]]:
        """Return the digests that a run's gaps account for, and the faults of the gaps that do not count."""
        if run_id not in self.known or self.known[run_id][0] < newest:
            while len(self.known) >= RUNS:
                self.known.pop(next(iter(self.known)))
            self.known[run_id] = (newest, *_accounted(run_id))
        return self.known[run_id][1:]


def _accounted(run_id: int) -> tuple[frozenset[bytes], list[str]]:
    found: set[bytes] = set()
    wrong: list[str] = []
    for gap, faults, doubts in judged(run_id):
        if faults or doubts:
            wrong.append(f"gap {gap.number} {[*faults, *doubts][0]}")
        else:
            found.update(row.digest for row in gaps.removed(gap))
    return frozenset(found), wrong


def _key_faults(gap: Gap) -> list[str]:
    """Report a gap that was not made with the key that is set."""
    key = event_proof.seal_key()
    if gaps.digest_of(gap, key) == bytes(gap.digest):
        return []
    plain = bool(key) and gaps.digest_of(gap, b"") == bytes(gap.digest)
    proof = WITHOUT if plain else OTHERWISE if key else UNKNOWN
    return [f"was {proof.format(them='it', their='its')}"]


def _untold(run_id: int, known: list[Gap]) -> dict[int, list[str]]:
    """Return, by the gap's number, whether its event or its order is missing.

    An event names the newest gap of its removal.
    """
    lines = _removal_events(run_id) if known else []
    named = {result: (event, actor) for event, actor, data in lines if (result := _named(data))}
    orders = _orders(max(event for event, _ in named.values())) if named else []
    programs = _of_programs(run_id) if named else []
    found: dict[int, list[str]] = {}
    after: Gap | None = None
    for gap in reversed(known):
        event = named.get((gap.number, bytes(gap.digest).hex()))
        if event:
            ordered = _ordered(gap, *event, orders) or _by_its_program(gap, *event, programs)
            found[gap.number] = [] if ordered else [NO_ORDER]
        elif after is not None and _stands_on(after, gap):
            found[gap.number] = found[after.number]
        else:
            found[gap.number] = [NO_EVENT]
        after = gap
    return found


def _stands_on(after: Gap, gap: Gap) -> bool:
    """Tell whether a gap belongs to the same removal as the one after it, which names it as the previous one."""
    same = ("policy", "policy_version", "by", "by_name", "at")
    chained = after.previous is not None and bytes(after.previous) == bytes(gap.digest)
    return chained and all(getattr(after, name) == getattr(gap, name) for name in same)


def _ordered(gap: Gap, event: int, actor: str, orders: list[_Order]) -> bool:
    """Tell whether the prune in progress at an event is the one that made this gap.

    Only one prune is in progress at a time.
    """
    at = bisect_left([order.event for order in orders], event)
    if not at:
        return False
    order = orders[at - 1]
    under_way = order.finished is None or order.finished > event
    return under_way and order.actor == actor == gap.by and (gap.policy, gap.policy_version) in order.policies


def _by_its_program(gap: Gap, event: int, actor: str, programs: list[tuple[int, str, str]]) -> bool:
    """Tell whether the run's own program ordered the removal: by its newest order before the event."""
    before = [program for program in programs if program[0] < event]
    return bool(before) and before[-1][1:] == (actor, gap.policy) and gap.policy_version == 0 and actor == gap.by


def _of_programs(run_id: int) -> list[tuple[int, str, str]]:
    """Return the orders of the run's program to remove checkpoints: event, actor and the name in place of a policy."""
    if not Run.objects.filter(pk=run_id, plan__external=True).exists():
        return []
    return [
        (pk, actor, str(data.get("policy"))) for pk, actor, _, data in _events("retention.requested", run_id=run_id)
    ]


def _orders(upto: int) -> list[_Order]:
    """Return the orders to prune before an event, the oldest first."""
    ends = Event.objects.filter(kind="retention.finished").values_list("subject", "pk")
    finished = dict(ends.order_by("-pk"))
    versions = {policy.pk: (policy.called, policy.version) for policy in RetentionPolicy.objects.all()}
    made = []
    for pk, actor, subject, data in _events("retention.ordered", pk__lt=upto):
        policies = data.get("policies")
        ids = policies.values() if isinstance(policies, dict) else ()
        counted = {versions[id] for id in ids if isinstance(id, int) and id in versions}
        made.append(_Order(pk, actor, counted, finished.get(subject)))
    return made


def _removal_events(run_id: int) -> list[tuple[int, str, dict[str, Any]]]:
    """Return the events of a run's removals: id, actor, data."""
    return [(pk, actor, data) for pk, actor, _, data in _events("retention.pruned", run_id=run_id)]


def _events(kind: str, **where: int) -> list[tuple[int, str, str, dict[str, Any]]]:
    """Return the events of a kind, the oldest first: id, actor, subject, data."""
    found = Event.objects.filter(kind=kind, **where).order_by("pk").values_list("pk", "actor", "subject", "data")
    return [(pk, actor, subject, _decode_data(data)) for pk, actor, subject, data in found]


def _decode_data(data: bytes | memoryview) -> dict[str, Any]:
    try:
        words = decode_canonical(bytes(data))
    except (ValueError, RecursionError):
        return {}
    return words if isinstance(words, dict) else {}


def _named(data: dict[str, Any]) -> tuple[int, str] | None:
    gap, digest = data.get("gap"), data.get("digest")
    return (gap, digest) if isinstance(gap, int) and isinstance(digest, str) else None
