"""Asks about one call, and returns what people said as data: an answer always comes within a time limit.

A call has a key, so that the same call again finds the same gate, however a model words it: made from its client's id
for it, or else from the call, the values beside it and the policy, so that a changed policy asks anew.

An approval is handed out once, which the server records before this answers: whoever is killed in between has nothing,
and no two calls have it. The same id, or the gate's number, reads it again, and is told when it was told first. A
caller by which the call is made at once is not allowed it again (`for_once`), but for a moment, as its answer may be
lost. A call without an id cannot be told from the next one that is alike, so that one asks people again. What they
refused is told again for a while, as they would be asked the same without end.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from typing import Any, Literal, TypeVar

import anyio
from pydantic import BaseModel, ValidationError

from .. import errors
from ..answers import Gate, Outcome
from ..approvals import post_deferred
from ..calls import in_words
from ..client import AsyncHoldpoint
from ..endings import INSTEAD, decision_of, end_sentence, gate_refusal, hand_out, not_done
from ..exact_calls import approved_arguments, digest_values
from ..posting import Ask, Posting, question_each
from ..runs import LOG, await_outcome, claim_run
from ..sending import Api, Op
from . import claude_tools

S = TypeVar("S", bound=BaseModel)
WAIT = 25.0  # seconds: Claude Code's MCP_TIMEOUT is 30 by default
REST = 2.0  # seconds of it in which the answer is read, handed out and sent
CALLS = 10_000  # that are kept for whoever makes them again
SHORTLY = 0.25  # seconds
LASTS = 600.0  # seconds for which a refusal of a call without an id is told again
LOST = 30.0  # seconds in which an approval that was told before still allows the call: the first answer may be lost
LATE = "Holdpoint did not answer in time"
TOLD = "You were told this at {at:%H:%M} UTC on {at:%-d %B} already. If you have done it, do not do it again."
ONCE = "An approval is for one call, so this one is not allowed: make it anew, and people are asked again."
TAKEN = (
    "The approval of {about} at gate {gate} was handed out at {at:%H:%M} UTC on {at:%-d %B} already, to another call. "
    "It counts once: ask again, under a new id."
)
TOOL = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,99}")  # what the server takes as a tool's name
RESERVED = re.compile(r"(ask|feedback|model_.*|[^A-Za-z].*)")
Status = Literal["approved", "rejected", "answered", "expired", "withdrawn", "open", "told"]


@dataclass(frozen=True, kw_only=True)
class Answer:
    """People's answer. `message` says it in words, for the agent; `arguments` are there where it is approved.

    `told`: it was approved, and another call was told so. `told_at`: when this call was told the same before.
    """

    status: Status
    message: str
    gate: int = 0
    run: int = 0
    about: str = ""
    url: str = ""
    by: str = ""
    comment: str = ""
    at: datetime | None = None
    arguments: dict[str, Any] = field(default_factory=dict)
    changes: Sequence[str] = ()
    edits: Sequence[dict[str, Any]] = ()  # JSON Patch
    answer: Any = None  # given instead of a decision
    told_at: datetime | None = None

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON for a program; members that say nothing are left out."""
        members = {
            "status": self.status, "gate": self.gate, "url": self.url, "message": self.message, "by": self.by,
            "comment": self.comment, "changes": list(self.changes), "answer": self.answer,
            "told_at": self.told_at.isoformat() if self.told_at else None,
        }  # fmt: skip
        filled = {name: value for name, value in members.items() if value not in ("", 0, [], None)}
        return filled | ({"arguments": self.arguments} if self.status == "approved" else {})


class Late(dict[str, str]):
    """A dictionary of the newest entries."""

    def __setitem__(self, name: str, value: str) -> None:
        super().__setitem__(name, value)
        while len(self) > CALLS:
            del self[next(iter(self))]


class Limits:
    """Limits how long a call waits for people; `leave` ends every wait, each of which then answers that it is open."""

    def __init__(self, wait: float = WAIT) -> None:
        if not 0 < wait <= 3600:
            raise ValueError(f"A call can wait for more than 0 and at most 3600 seconds, not for {wait:g}.")
        self.wait = wait
        self.waiting: set[anyio.CancelScope] = set()
        self.late = Late()  # calls that were answered before people had decided, by their content

    @property
    def patient(self) -> float:
        """Return the seconds after which a wait ends by itself, in time for its answer."""
        return self.wait - self.rest

    @property
    def rest(self) -> float:
        """Return the seconds after that until the limit."""
        return min(REST, self.wait / 2)

    @contextmanager
    def within(self) -> Iterator[anyio.CancelScope]:
        """Cut what is inside at the limit: the scope's `cancelled_caught` tells."""
        with anyio.move_on_after(self.wait) as scope:
            self.waiting.add(scope)
            try:
                yield scope
            finally:
                self.waiting.discard(scope)

    def leave(self) -> None:
        """End every wait now."""
        for scope in tuple(self.waiting):
            scope.cancel()


class NoSuchName(errors.HoldpointError):
    """People cannot be asked about a tool with this name: it has other characters than letters, digits, _ . : / -"""


def question(
    tool: str,
    input: Mapping[str, Any],
    *,
    title: str = "",
    pinned: Sequence[str] = (),
    schema: Mapping[str, Any] | None = None,
    idempotent: bool = False,
    was: str = "",
    **shown: Any,
) -> Posting:
    """Return the question whether a tool may be called with this input. Raises NoSuchName.

    `was`: the text of the file that Write is to replace. `shown`: further arguments of `question_each`.
    """
    # A slash becomes a colon, which no tool of MCP has in its name.
    name, title = tool.replace("/", ":"), title or claude_tools.title_call(tool, input)
    if not TOOL.fullmatch(name) or (":" in tool and "/" in tool):
        raise NoSuchName(
            f"People cannot be asked about a tool with the name {tool[:120]!r}: it may have 1 to 100 letters, digits, "
            "_ . - and /."
        )
    plain = re.sub(r"[^A-Za-z0-9_]", "_", name)[:90]  # the name of the state's field that holds the arguments
    asked = Ask(
        f"tool_{plain}" if RESERVED.fullmatch(plain) or plain.endswith("_result") else plain, input, title=title,
        tool=name, schema=schema, idempotent=idempotent,
        pinned=[argument for argument in (pinned or claude_tools.PINS.get(tool, ())) if argument in input],
        draws=list(claude_tools.draw_call(tool, input, was)),
    )  # fmt: skip
    return question_each([asked], title=title, **shown)


def keyed(posting: Posting, kind: str, *, id: str = "") -> Posting:
    """Return the question under the key of its call. `kind`: what asks, as a word. Raises NotJson."""
    made = digest_values(posting.bound)
    return replace(posting, key=f"{kind}-{sha256(id.encode()).hexdigest()}" if id else f"{kind}-call-{made}")


async def ask(hp: AsyncHoldpoint, posting: Posting, limits: Limits, *, to: str = "") -> Answer:
    """Ask, and return the answer; one that is `open` where people take longer. An approval is handed out.

    That is not cut off in the rest of the time, or it would be lost. `to`: the call's name, by its id, under which an
    answer that was lost all the same is read again. Raises HoldpointError.
    """
    taker, until = to or f"call-{token_hex(16)}", hp._api.habits.clock() + limits.patient
    while True:
        found, key = await hp._io.run(
            _decided(hp._api, posting, until, lambda answer: not to and _is_over(hp._api, answer))
        )
        await hp._io.run(_ended(hp._api, found))
        if found.status != "approved":
            return found
        handed = await _handed_out(hp, found, until + limits.rest, to=taker, frees="" if to else key)
        if to or handed.status == "approved":
            return handed


def for_once(hp: AsyncHoldpoint, answer: Answer) -> Answer:
    """Return the answer for a caller by which the call is made at once: an approval that was told before is `told`.

    Not within LOST seconds of the first time, by the server's clock.
    """
    at = answer.told_at
    if answer.status != "approved" or at is None or hp._api.now() - at <= timedelta(seconds=LOST):
        return answer
    return replace(answer, status="told", message=f"{TOLD.format(at=at)} {ONCE}")


async def decision(hp: AsyncHoldpoint, posting: Posting, *, until: float) -> Answer:
    """Ask, and return the answer without handing it out, for a caller with a record of its own of what it let through.

    What nobody decided is asked again. Raises HoldpointError.
    """
    found, _ = await hp._io.run(
        _decided(hp._api, posting, until, lambda answer: answer.status in ("expired", "withdrawn"))
    )
    return found


async def ask_once(hp: AsyncHoldpoint, posting: Posting, kind: str, id: str, limits: Limits) -> Answer:
    """Ask about a call with an id. A model that makes a call anew does so under a new id.

    The next one that is alike goes on at the same gate where this one was answered too early, and takes its decision
    along. Raises HoldpointError.
    """
    own = keyed(posting, kind, id=id)
    place = digest_values(hp._io.client.headers.get("authorization", ""), keyed(posting, kind).key)
    key = limits.late.pop(place, own.key)
    answered = False
    try:
        found = await ask(hp, replace(own, key=key), limits, to=own.key)
        answered = found.status != "open"
        return found
    except errors.HoldpointError as error:
        answered = not isinstance(error, errors.Unreachable)
        raise
    finally:
        if not answered:
            limits.late[place] = key


async def read(hp: AsyncHoldpoint, gate: int, limits: Limits) -> Answer:
    """Return the answer at a gate about one thing, or that it is open. Raises HoldpointError."""
    until = hp._api.habits.clock() + limits.patient
    found = await hp._io.run(_read(hp._api, gate, until))
    if found.status != "approved":
        return found
    return await _handed_out(hp, found, until + limits.rest, to=f"gate-{gate}")


def _read(api: Api, number: int, until: float) -> Op[Answer]:
    gate = yield from api.get(f"gates/{number}", Gate)
    if gate.kind != "review" or len(gate.actions) != 1:
        raise errors.HoldpointError(
            f"Gate {number} does not ask whether one thing may be done, so its decision allows nothing here. The "
            f"program that works on run {gate.run} goes on by it."
        )
    return (yield from _answered(api, number, until))


def _decided(api: Api, posting: Posting, until: float, again: Callable[[Answer], bool]) -> Op[tuple[Answer, str]]:
    """Return the answer, and the key of its gate. `again`: whether people are asked anew after such an answer."""
    key = posting.key
    while True:
        try:
            pending = yield from post_deferred(api, replace(posting, key=key), ask_only=True)
        except errors.KeyReused:
            raise errors.HoldpointError(
                "The same id was used before for another call, so this one is not done. Ask again under a new id."
            ) from None
        found = yield from _answered(api, pending.id, until, posting.asked)
        if not again(found):
            return replace(found, run=pending.run), key
        key = f"{posting.key}-{pending.id}"


async def _handed_out(hp: AsyncHoldpoint, answer: Answer, ends: float, *, to: str, frees: str = "") -> Answer:
    """Return an approval that is now handed out to this call, or was before; one that another call has is `told`.

    `frees`: the key of its gate, under which the next call that is alike asks people again. Shortly before it `ends`,
    nothing is handed out: the same call again still finds it.
    """
    left = ends - hp._api.habits.clock()
    if left < SHORTLY:
        raise errors.Unreachable("It is too late to hand the approval out.")
    with anyio.move_on_after(left, shield=True):
        handed = await hp._io.run(hand_out(hp._api, answer.gate, to=to, frees=frees))
        if handed.first:
            return answer
        if handed.yours:
            return replace(answer, told_at=handed.at, message=f"{TOLD.format(at=handed.at)} {answer.message}")
        message = TAKEN.format(about=answer.about, gate=answer.gate, at=handed.at)
        return Answer(status="told", message=message, gate=answer.gate, url=answer.url, told_at=handed.at)
    raise errors.Unreachable("The approval was not handed out in time.")


def _ended(api: Api, answer: Answer) -> Op[None]:
    """End the run of a decided gate now: it performs nothing, and would wait in the queue for a worker to end it."""
    if answer.status == "open":
        return
    try:
        held, _ = yield from claim_run(api, answer.run)
        held.let_go()
    except errors.HoldpointError as error:
        LOG.debug("Run %s ends by itself: %s", answer.run, error)


def _answered(api: Api, number: int, until: float, asked: Mapping[str, Any] | None = None) -> Op[Answer]:
    try:
        outcome = yield from await_outcome(api, number, until)
    except errors.StillOpen as still:
        message = (
            f"Nobody has decided yet at gate {number}, so nothing was done. Go on without it, or tell the person that "
            f"it waits. Once people have decided, the same call or gate {number} gives their decision: {still.url}"
        )
        return Answer(status="open", message=message, gate=number, url=still.url)
    gate = yield from api.get(f"gates/{number}", Gate)
    return _build_answer(outcome, gate, asked or {})


def _build_answer(outcome: Outcome, gate: Gate, asked: Mapping[str, Any]) -> Answer:
    """Return the answer of a decided gate. Raises Altered."""
    about = ", ".join(gate.actions)
    known = {"gate": gate.id, "run": gate.run, "url": gate.url}
    refusal, decision = gate_refusal(gate, gate.actions, known), decision_of(gate, about)
    same: dict[str, Any] = {"gate": gate.id, "url": gate.url, "at": decision.at}
    if isinstance(refusal, errors.Answered):
        words = f"{refusal.by} answered instead of {about}, which is not done: {refusal.answer}"
        return Answer(status="answered", message=words, by=refusal.by, answer=refusal.answer, **same)
    if refusal is not None:
        expired: Status = "expired" if isinstance(refusal, errors.Expired) else "withdrawn"
        status: Status = "rejected" if isinstance(refusal, errors.Rejected) else expired
        return Answer(status=status, message=str(refusal), by=refusal.by, **same)
    edits = outcome.edits.get(about, [])
    changes = in_words(edits)
    given = (outcome.outcome.arguments.get(about) if outcome.outcome else None) or {}
    arguments = approved_arguments(gate, about, given, asked=asked.get(about), edits=edits)
    approval = f"{decision.by} approved {about}{', with changes: ' + '; '.join(changes) if changes else ''}"
    message = end_sentence(f"{end_sentence(approval)} {decision.comment}" if decision.comment else approval)
    return Answer(
        status="approved", message=message, about=about, by=decision.by, comment=decision.comment, arguments=arguments,
        changes=changes, edits=edits, **same,
    )  # fmt: skip


def _is_over(api: Api, answer: Answer) -> bool:
    """Tell whether a refusal counts no more, by the server's clock."""
    if answer.at is None or answer.status in ("open", "approved"):
        return False
    return api.now() - answer.at > timedelta(seconds=LASTS)


def in_trouble(error: Exception) -> str:
    """Return why people could not be asked, and what to do; nothing was done."""
    if isinstance(error, errors.Unreachable) or (isinstance(error, errors.Problem) and error.status >= 500):
        return not_done(f"{LATE}, so nobody was asked or has decided, and nothing was done")
    if isinstance(error, errors.Problem):
        message = f"Holdpoint refused the question, so nothing was done: {error}"
        return not_done(message) if error.status == 429 and INSTEAD not in message else message
    return f"Nothing was done: {error}"


def read_settings(kind: type[S], file: str, what: str) -> S:
    """Return the settings in a JSON file, or the usual ones without a file. Raises NotConfigured."""
    try:
        return kind.model_validate_json(Path(file).read_bytes()) if file else kind()
    except OSError as error:
        raise errors.NotConfigured(f"The {what} {file} cannot be read: {error.strerror}.") from None
    except ValidationError as error:
        fault = describe_fault(error.errors(include_url=False)[0])
        raise errors.NotConfigured(f"The {what} {file} is wrong at {fault}.") from None


def describe_fault(fault: Mapping[str, Any]) -> str:
    """Return one of pydantic's errors in words: where it is, and what is wrong."""
    return f"{'.'.join(map(str, fault['loc'])) or 'all of it'}: {fault['msg']}"
