"""An approved action in progress: its final arguments, its key, people's changes, and the report of its result."""

from __future__ import annotations

import inspect
import logging
import warnings
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from typing import Any, TypeVar

from pydantic import BaseModel, TypeAdapter

from .answers import Begun, Turn, Undone
from .drivers import Awaiting, Blocking, operation
from .errors import HoldpointError, NotDone, ReportedBefore, Unreachable
from .json_pointer import parts_of
from .runs import Held
from .sending import Op, encode_body, to_json_data

T = TypeVar("T")
LOG = logging.getLogger("holdpoint")
RESULT = "_result"  # the suffix to an action's id that names its result in the state
LONGEST = 2000  # characters of an error
FORGOTTEN = "The program went on without saying whether it was done."


@dataclass(frozen=True)
class Decision:
    """People's decision: `verdict` approve or edit, `by` whom, and their `comment`."""

    verdict: str
    by: str
    at: datetime | None
    comment: str


@dataclass
class Allowed:
    """An effect that is begun under a claim. `undoes`: the effect that it undoes."""

    run_claim: Held
    gate: int
    url: str
    action: str
    arguments: dict[str, Any]
    effect: Begun
    edits: list[dict[str, Any]]
    decision: Decision
    undoes: Undone | None = None
    goes_on: bool = False  # its holder goes on with the run under the same claim
    turn: Turn | None = None  # the answer to the report
    unanswered: bool = False  # it was reported, and no answer came: the server may know it

    def report(
        self, status: str, *, writes: dict[str, Any] | None = None, error: str = "", retry: bool = False
    ) -> Op[Turn]:
        body = {"status": status, "writes": writes or {}, "error": error, "retry": retry}
        try:
            turn = yield from self.run_claim.work(f"effects/{self.effect.id}/results", body)
        except Unreachable:
            self.unanswered = True
            raise
        self.turn = turn
        if not self.goes_on:
            self.run_claim.let_go()
            yield from self._released(turn)
        return turn

    def stop(self) -> Op[None]:
        """Stop working on the run, so that another process can resume it."""
        self.run_claim.let_go()
        if self.turn is not None:
            yield from self._released(self.turn)

    def _released(self, turn: Turn) -> Op[None]:
        """Release a run that goes on, so that the next program need not wait for the lease to end."""
        if not turn.next.kind:
            return
        try:
            yield from self.run_claim.work("releases", {})
        except HoldpointError as error:
            LOG.info("Run %s was not released: %s", self.run_claim.run, error)

    @property
    def reported(self) -> bool:
        return self.turn is not None

    def leave(self, error: BaseException | None) -> Op[None]:
        """End the work; an effect that was not reported is reported as unknown, and people are asked.

        The server refuses another report after one that it knows, so that none follows one without an answer. What
        `error` is does not say so: the work itself may have met a server that did not answer.
        """
        try:
            if not (self.reported or self.unanswered):
                yield from self._report_end(error)
        except ReportedBefore:
            return
        except HoldpointError as own:
            if error is None:
                raise
            LOG.warning("Effect %s of run %s could not be reported: %s", self.effect.id, self.run_claim.run, own)
        finally:
            if not (self.goes_on and self.reported):
                self.run_claim.let_go()

    def _report_end(self, error: BaseException | None) -> Op[None]:
        if isinstance(error, NotDone):
            yield from self.report("failed", error=one_line(error), retry=error.retry)
            return
        yield from self.report("unknown", error=one_line(error) if error else FORGOTTEN)
        if error is None:
            warnings.warn(
                f"{self.action} was left without done() or failed(), so people are asked whether it happened. Call "
                "call.done(result) once it has.",
                RuntimeWarning,
                stacklevel=2,
            )


class _Call:
    """One approved action: what people approved, and the methods that report its result.

    `name`: the action. `arguments`: as people approved them. `key`: the idempotency key, for the provider. `attempts`:
    how often it was begun under this key, this time included. `edits`: people's changes to the arguments, a JSON Patch
    (RFC 6902), and `changes` the same in words, for a model. `decision`: who approved it, with which comment. `gate`,
    `run`: their numbers. `url`: the gate's page. `undoes`: the effect that is to be undone, or None.
    """

    def __init__(self, io: Any, allowed: Allowed) -> None:
        self._io, self._allowed = io, allowed
        self.name, self.arguments, self.undoes = allowed.action, allowed.arguments, allowed.undoes
        self.key, self.attempts = allowed.effect.key, allowed.effect.attempts
        self.edits, self.changes, self.decision = allowed.edits, in_words(allowed.edits), allowed.decision
        self.gate, self.run, self.url = allowed.gate, allowed.run_claim.run, allowed.url

    def read(self, kind: type[T]) -> T:
        """Return the final arguments as a model, or any type that pydantic reads. Raises NotDone if they do not fit."""
        return read_arguments(TypeAdapter(kind), self.arguments)

    def check(self) -> None:
        """Raise StaleToken if somebody else has taken the run over: call it right before the outside world."""
        self._allowed.run_claim.check()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name} of gate {self.gate}>"

    @operation
    def done(self, result: Any = None) -> Op[None]:
        """Report that it happened, with its result. A result that is not JSON is kept as text.

        Raises HoldpointError for a coroutine or a generator, which is no result yet.
        """
        refuse_unfinished(self.name, result)
        writes = {} if self.undoes else {self.name + RESULT: result_as_json(result)}
        yield from self._allowed.report("done", writes=writes)

    @operation
    def failed(self, error: str, *, retry: bool = False) -> Op[None]:
        """Report that it provably did not happen. `retry`: nothing was sent, so that trying again is safe."""
        yield from self._allowed.report("failed", error=error[:LONGEST], retry=retry)

    @operation
    def unknown(self, error: str) -> Op[None]:
        """Report that nobody knows whether it happened, as after a timeout: people are asked."""
        yield from self._allowed.report("unknown", error=error[:LONGEST])


class Call(_Call, Blocking):
    """One approved action; its methods wait for the server."""


class AsyncCall(_Call, Awaiting):
    """The same, awaited."""


def read_arguments(adapter: TypeAdapter[T], arguments: Any) -> T:
    """Return the arguments in the type. Raises NotDone: nothing was done with arguments that do not fit."""
    try:
        return adapter.validate_python(arguments)
    except ValueError as error:
        raise NotDone(f"The arguments that were allowed do not fit: {one_line(error)}") from error


def refuse_unfinished(name: str, result: Any) -> None:
    """Raise HoldpointError for a result that runs only when it is read, as a coroutine or a generator, or holds one.

    The report would run it, and take what it raises for a result that is not JSON. What the function did before it
    returned it is not known.
    """
    for part in _parts(result):
        if isinstance(part, Awaitable | Iterator | AsyncIterator):
            if inspect.iscoroutine(part) and inspect.getcoroutinestate(part) == inspect.CORO_CREATED:
                part.close()  # else Python warns of it later
            returned = "returned" if part is result else "returned a result with"
            instead = (
                "Await it, in a coroutine function." if isinstance(part, Awaitable) else "Return all of it, as a list."
            )
            message = f"{name} {returned} a {type(part).__name__} and not its result, so it is not reported as done."
            raise HoldpointError(f"{message} {instead}")


def _parts(value: Any) -> Iterator[Any]:
    """Yield a value and all that it holds, as far as the report writes it out as JSON."""
    ahead, known = [value], dict[int, Any]()
    while ahead:
        part = ahead.pop()
        yield part
        if id(part) in known:
            continue
        if isinstance(part, Mapping):
            ahead += part.values()
        elif isinstance(part, list | tuple | set | frozenset | deque):
            ahead += part
        elif is_dataclass(part) and not isinstance(part, type):
            ahead += [getattr(part, field.name, None) for field in fields(part)]
        elif isinstance(part, BaseModel):
            ahead += [*vars(part).values(), *(part.__pydantic_extra__ or {}).values()]
        else:
            continue
        known[id(part)] = part


def result_as_json(result: Any) -> Any:
    """Return the result as JSON, or else as text, because it happened either way."""
    try:
        document = to_json_data(result)
        encode_body(document)
        return document
    except ValueError:
        return repr(result)


def one_line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return (text if isinstance(error, NotDone) else f"{type(error).__name__}: {text}")[:LONGEST]


def in_words(edits: Sequence[dict[str, Any]]) -> list[str]:
    """Return people's changes, one line each."""
    lines = []
    for edit in edits:
        place = ".".join(parts_of(str(edit["path"]))) or "all of it"
        verb = "was added:" if edit["op"] == "add" else "is now"
        lines.append(f"{place} was taken out" if edit["op"] == "remove" else f"{place} {verb} {edit.get('value')!r}")
    return lines
