"""Asks about one call, and returns what people said as data: an answer always comes within a time limit.

A call has a key, so that the same call again finds the same gate, however a model words it: made from its client's id
for it, or else from the call, the values beside it and the policy, so that a changed policy asks anew. A decision about
a call without an id counts for a while, since nobody can tell such a call from the next one that is alike; after that,
people are asked again.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, Literal

from ..answers import Gate, Outcome
from ..approvals import deferred
from ..awaiting import awaited
from ..calls import in_words
from ..client import AsyncHoldpoint
from ..endings import decision_of, refused, sentence
from ..errors import Answered, Expired, HoldpointError, KeyReused, Problem, Rejected, StillOpen, Unreachable
from ..exact_calls import approved, digest
from ..exchange import Op
from ..holding import LOG, claim
from ..posting import Posting
from ..sending import Api

LASTS = 600.0  # seconds for which a decision about a call without an id counts
Status = Literal["approved", "rejected", "answered", "expired", "withdrawn", "open"]


@dataclass(frozen=True, kw_only=True)
class Answer:
    """People's answer. `message` says it in words, for the agent; `arguments` are there where it is approved."""

    status: Status
    message: str
    gate: int = 0
    url: str = ""
    by: str = ""
    comment: str = ""
    at: datetime | None = None
    arguments: dict[str, Any] = field(default_factory=dict)
    changes: Sequence[str] = ()
    edits: Sequence[dict[str, Any]] = ()  # JSON Patch
    answer: Any = None  # given instead of a decision

    def told(self) -> dict[str, Any]:
        """Return it as JSON for a program; members that say nothing are left out."""
        members = {
            "status": self.status, "gate": self.gate, "url": self.url, "message": self.message, "by": self.by,
            "comment": self.comment, "changes": list(self.changes), "answer": self.answer,
        }  # fmt: skip
        told = {name: each for name, each in members.items() if each not in ("", 0, [], None)}
        return told | ({"arguments": self.arguments} if self.status == "approved" else {})


def keyed(posting: Posting, kind: str, *, id: str = "") -> Posting:
    """Return the question under the key of its call. `kind`: what asks, as a word. Raises NotJson."""
    made = digest(posting.bound)
    return replace(posting, key=f"{kind}-{sha256(id.encode()).hexdigest()}" if id else f"{kind}-call-{made}")


async def ask(hp: AsyncHoldpoint, posting: Posting, *, until: float, lasts: float | None = None) -> Answer:
    """Ask, and return the answer; one that is `open` at `until`, by the client's clock.

    `lasts`: seconds for which a decision counts; None for ever. Raises HoldpointError.
    """
    return await hp._io.run(_asked(hp._api, posting, until, lasts))


async def ask_once(
    hp: AsyncHoldpoint, posting: Posting, kind: str, id: str, *, late: MutableMapping[str, str], until: float
) -> Answer:
    """Ask about a call with an id. A model that makes a call anew does so under a new id.

    `late` keeps the calls that were answered too early, by their content: the next one that is alike goes on at the
    same gate, and takes its decision along. Raises HoldpointError.
    """
    own = keyed(posting, kind, id=id)
    place = digest(hp._io.client.headers.get("authorization", ""), keyed(posting, kind).key)
    key = late.pop(place, own.key)
    told = False
    try:
        found = await ask(hp, replace(own, key=key), until=until)
        told = found.status != "open"
        return found
    except HoldpointError as error:
        told = not isinstance(error, Unreachable)
        raise
    finally:
        if not told:
            late[place] = key


async def read(hp: AsyncHoldpoint, gate: int, *, until: float) -> Answer:
    """Return the answer at a gate about one thing, or that it is open at `until`. Raises HoldpointError."""
    return await hp._io.run(_read(hp._api, gate, until))


def _read(api: Api, number: int, until: float) -> Op[Answer]:
    gate = yield from api.get(f"gates/{number}", Gate)
    if gate.kind != "review" or len(gate.actions) != 1:
        raise HoldpointError(
            f"Gate {number} does not ask whether one thing may be done, so its decision allows nothing here. The "
            f"program that works on run {gate.run} goes on by it."
        )
    return (yield from _answered(api, number, until))


def _asked(api: Api, posting: Posting, until: float, lasts: float | None) -> Op[Answer]:
    key = posting.key
    while True:
        try:
            pending = yield from deferred(api, replace(posting, key=key), ask_only=True)
        except KeyReused:
            raise HoldpointError(
                "The same id was used before for another call, so this one is not done. Ask again under a new id."
            ) from None
        found = yield from _answered(api, pending.id, until, posting.asked)
        if not _is_over(api, found, lasts):
            yield from _ended(api, pending.run, found)
            return found
        key = f"{posting.key}-{pending.id}"


def _ended(api: Api, run: int, found: Answer) -> Op[None]:
    """End the run of a decided gate now: it performs nothing, and would wait in the queue for a worker to end it."""
    if found.status == "open":
        return
    try:
        held, _ = yield from claim(api, run)
        held.let_go()
    except HoldpointError as error:
        LOG.debug("Run %s ends by itself: %s", run, error)


def _answered(api: Api, number: int, until: float, asked: Mapping[str, Any] | None = None) -> Op[Answer]:
    try:
        outcome = yield from awaited(api, number, until)
    except StillOpen as still:
        told = (
            f"Nobody has decided yet at gate {number}, so nothing was done. Ask again with the same call, or with gate "
            f"{number}, to get the decision; people decide at {still.url}"
        )
        return Answer(status="open", message=told, gate=number, url=still.url)
    gate = yield from api.get(f"gates/{number}", Gate)
    return _told(outcome, gate, asked or {})


def _told(outcome: Outcome, gate: Gate, asked: Mapping[str, Any]) -> Answer:
    """Return the answer of a decided gate. Raises Altered."""
    about = ", ".join(gate.actions)
    known = {"gate": gate.id, "run": gate.run, "url": gate.url}
    refusal, decision = refused(gate, gate.actions, known), decision_of(gate, about)
    same: dict[str, Any] = {"gate": gate.id, "url": gate.url, "at": decision.at}
    if isinstance(refusal, Answered):
        told = f"{refusal.by} answered instead of {about}, which is not done: {refusal.answer}"
        return Answer(status="answered", message=told, by=refusal.by, answer=refusal.answer, **same)
    if refusal is not None:
        expired: Status = "expired" if isinstance(refusal, Expired) else "withdrawn"
        status: Status = "rejected" if isinstance(refusal, Rejected) else expired
        return Answer(status=status, message=str(refusal), by=refusal.by, **same)
    edits = outcome.edits.get(about, [])
    changes = in_words(edits)
    given = (outcome.outcome.arguments.get(about) if outcome.outcome else None) or {}
    arguments = approved(gate, about, given, asked=asked.get(about), edits=edits)
    said = f"{decision.by} approved {about}{', with changes: ' + '; '.join(changes) if changes else ''}"
    message = sentence(f"{sentence(said)} {decision.comment}" if decision.comment else said)
    return Answer(
        status="approved", message=message, by=decision.by, comment=decision.comment, arguments=arguments,
        changes=changes, edits=edits, **same,
    )  # fmt: skip


def _is_over(api: Api, found: Answer, lasts: float | None) -> bool:
    """Tell whether the decision counts no more, by the server's clock."""
    if lasts is None or found.at is None or found.status == "open":
        return False
    return api.now() - found.at > timedelta(seconds=lasts)


def in_trouble(error: Exception) -> str:
    """Return why people could not be asked, and what to do; nothing was done."""
    if isinstance(error, Unreachable):
        return "Holdpoint did not answer in time, so nobody was asked or has decided, and nothing was done. Ask again."
    if isinstance(error, Problem):
        return f"Holdpoint refused the question, so nothing was done: {error}"
    return f"Nothing was done: {error}"
