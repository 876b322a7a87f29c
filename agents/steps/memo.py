"""`self.once`: makes a call inside a step once and keeps its result, however often the step is tried.

A result belongs to the checkpoint from which the step was sent on: a crash, a retry and a person's "try again"
find it there; a rewind or a repair makes a new checkpoint, and the call is made anew. The call itself is outside
any transaction, since it may be slow; its result is inserted under the run's token. Of two workers that both made
the call the second finds the first one's result, and uses that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, NoReturn
from uuid import UUID

import structlog
from django.db import transaction

from agents.children.gather import Gatherer
from agents.children.spawn import Spawning
from agents.definition.agent import ChildResult, ChildRun
from agents.errors import AgentError, RunLost
from agents.models import Memo
from agents.session import reuse
from agents.session.performer import Beside
from agents.session.run_session import RunSession
from agents.waits.step_waits import StepWaits
from checkpoints.errors import Fenced, ValueRefused
from checkpoints.runs import holds
from checkpoints.runs.plans import StepSpec
from checkpoints.store import Snapshot
from checkpoints.values import digests
from checkpoints.values.canonical_json import decode_canonical
from checkpoints.values.characters import one_line

from . import refusals
from .alarms import unalarmed
from .mid_step import LiveText, MidStepCheckpoints
from .open_resources import StepResources

log = structlog.get_logger()


class StepMemory:
    """The runtime's services for one execution of a step: calls made once, refusals, and live text."""

    def __init__(self, session: RunSession, spec: StepSpec) -> None:
        self.session = session
        self.spec = spec
        self.lost = False
        self.voice = LiveText(session, spec)
        self.waits = StepWaits(session, spec, lambda: self.base)
        self.spawning = Spawning(session, spec, lambda: self.base)
        self.gathering = Gatherer(session, spec, lambda: self.base)
        self.mid_step = MidStepCheckpoints(session, spec)
        self.resources = StepResources(session, spec)
        self._base: UUID | None = None
        self._name = ""

    def once(self, name: str, fn: Callable[..., Any], args: tuple[Any, ...], salt: Any) -> Any:
        """Return the kept result of fn(*args); call it where none is kept. Raises AgentError and RunLost."""
        digest = digest_of(name, args, salt)
        with unalarmed():
            kept = self._kept(name, digest)
            if kept is None and not self.session.beat.holds():  # the call would be another worker's to make
                self._lose()
        if kept is None:
            made = reuse.packed(f"once({name!r})", fn(*args), instead="Return less of it.")
            with unalarmed():
                kept = self._keep(name, digest, made)
        else:
            log.info("call.remembered", step=self.spec.name, call=name)
        return decode_canonical(kept)

    def sent(self) -> tuple[str, str]:
        """Return the kind and step of the checkpoint from which the run came to this step."""
        place = self.session.path.sent(self.spec.name)
        return (place.kind, place.step) if place else ("", "")

    def moves(self) -> Iterator[tuple[str, str, str]]:
        """Yield (checkpoint, its step, the step it led to) for each move of the run by people, the newest first."""
        return ((str(each.id), each.step, each.next_step) for each in self.session.path.moves())

    def refusals(self) -> list[str]:
        """List the validators' objections since an output was last accepted, oldest first."""
        return refusals.words_for(self.session, self.spec)

    def progress(self, text: str) -> None:
        """Show a text while the step runs: at a checkpoint that the page can see. Raises RunLost."""
        try:
            with unalarmed():
                self.session.flush()
        except Fenced:
            self._lose()
        self.voice.say(text)

    def checkpoint(self, value: Any, name: str, every: int | None, seconds: float | None) -> None:
        """Keep a value from which this step goes on after a crash. Raises AgentError and RunLost."""
        if not name and not self.mid_step.due(every, seconds):
            return
        try:
            with unalarmed():
                self.session.flush()
                self.mid_step.keep(self.base, value, name)
        except Fenced:
            self._lose()

    def checkpointed(self, default: Any) -> Any:
        """Return the newest value that this execution kept, or `default`. Raises NotVerified."""
        with unalarmed():
            return self.mid_step.newest(self.base, default)

    def sleep_until(self, moment: datetime | timedelta, name: str) -> None:
        """Return once it is `moment`. Raises Suspended."""
        self.start_rest()
        with unalarmed():
            self.waits.sleep_until(moment, name)

    def signal(self, name: str, timeout: timedelta | None) -> Any:
        """Return the value of the next signal of this name. Raises Suspended and SignalTimeout."""
        self.start_rest()
        try:
            with unalarmed():
                return self.waits.signal(name, timeout)
        except Fenced:
            self._lose()

    def name_checkpoint(self, name: str) -> None:
        """Name the checkpoint that this step saves. Raises AgentError."""
        if self.spec.kind == "gate":
            raise AgentError(f"{self.spec.name} is a gate, which saves no checkpoint; let a step name its own.")
        if not isinstance(name, str) or not name.strip() or len(name) > holds.LONGEST:
            raise AgentError(f"name_checkpoint() takes a name of 1 to {holds.LONGEST} characters; got {name!r:.200}.")
        self._name = self.session.clean(name)

    def hold(self, name: str, thing: Any, described: Any) -> None:
        """Leave a thing open for later steps. Raises AgentError."""
        self.resources.hold(name, thing, described)

    def held(self, name: str) -> Any:
        """Return what is open under this name; None where nothing was opened. Raises AgentError."""
        return self.resources.held(name)

    def beside(self) -> list[Beside]:
        """List what is written in the transaction of the step's save."""
        held: list[Beside] = [self.resources.keep] if self.spec.holds else []
        return [*held, self._give_name] if self._name else held

    def _give_name(self, saved: Snapshot) -> None:
        holds.name(self.session.run, saved.seq, self._name, by=self.session.by)

    def start_rest(self) -> None:
        """Start the children that were put off, before the step waits or returns. Raises Suspended and RunLost."""
        try:
            with unalarmed():
                self.spawning.start_rest()
        except Fenced:
            self._lose()

    def spawn(self, agent: str, input: Any, config: Mapping[str, Any] | None, name: str) -> ChildRun:
        """Return the child that this call starts, once. Raises RunLost, and as Spawning.spawn."""
        try:
            with unalarmed():
                return self.spawning.spawn(agent, input, config, name)
        except Fenced:
            self._lose()

    def gather(self, children: Sequence[ChildRun], need: str | int) -> list[ChildResult | None]:
        """Return the children's results. Raises RunLost, and as Gatherer.gather."""
        self.start_rest()
        try:
            with unalarmed():
                return self.gathering.gather(children, need)
        except Fenced:
            self._lose()

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Raise Fenced at the end of the block if the run was lost, and Suspended if the step has to wait.

        So they are if the step swallowed RunLost or Suspended. What a step that fails held open is closed.
        """
        try:
            yield
        except BaseException:
            self.resources.drop()
            raise
        finally:
            self.voice.hush()
            if self.lost:
                raise Fenced
            if suspended := self.spawning.suspended or self.waits.suspended or self.gathering.suspended:
                raise suspended

    @property
    def base(self) -> UUID:
        """Return the checkpoint under which results are kept: that from which the step was sent on.

        A recovery does not change it, unless it followed a refused output: "try again" then makes the calls anew.
        """
        if self._base is None:
            sent = self.session.path.sent(self.spec.name) or self.session.path.head
            ids = [sent.id, *(place.id for place in self.session.path.after(sent.id) or ())]
            refused = refusals.bases(self.session.run.pk, self.spec.name, ids) if len(ids) > 1 else set()
            after = [later for earlier, later in pairwise(ids) if earlier in refused]
            self._base = after[-1] if after else ids[0]
        return self._base

    def _kept(self, name: str, digest: bytes) -> bytes | None:
        found = Memo.objects.filter(
            run_id=self.session.run.pk, base=self.base, step=self.spec.name, name=name, digest=digest
        )
        return next((bytes(result) for result in found.values_list("result", flat=True)), None)

    def _keep(self, name: str, digest: bytes, result: bytes) -> bytes:
        row = Memo(
            run=self.session.run, base=self.base, step=self.spec.name, name=name, digest=digest, result=result,
            token=self.session.claim.token,
        )  # fmt: skip
        try:
            with transaction.atomic():
                self.session.hold_token()
                Memo.objects.bulk_create([row], ignore_conflicts=True)
                kept = self._kept(name, digest)
        except Fenced:
            self._lose()
        return kept or result

    def _lose(self) -> NoReturn:
        self.lost = True
        raise RunLost


def digest_of(name: str, args: tuple[Any, ...], salt: Any) -> bytes:
    """Return the digest of a call's arguments and salt, its key beside its name. Raises AgentError."""
    if not isinstance(name, str) or not name or len(name) > 100 or name != one_line(name, 100):
        raise AgentError(f"once() takes a name of 1 to 100 printable characters first; it got {name!r}.")
    try:
        return digests.of_value({"args": list(args), "salt": salt})
    except ValueRefused as error:
        raise AgentError(f"once({name!r}): {error.pointer} {error.reason}; it is kept by what JSON can say.") from error
