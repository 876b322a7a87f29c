"""A program with the client: its token, what it does, and people who decide meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

from django.contrib.auth.models import Group, User
from holdpoint import AsyncCall, AsyncHoldpoint, Call, Holdpoint

from approvals.models import Gate
from checkpoints.models import Run
from checkpoints.store import load
from tests.agents.remote.outside_program import decide
from tests.factories import MEMBER, make_team, make_user, unique
from tests.factories.tokens import make_token
from tests.harness.session import ROOT
from tests.harness.waiting import until

T = TypeVar("T")
WIRE = {"to": "ACME", "amount": "120.00"}
Got = dict[str, Any]
POOL = ThreadPoolExecutor(4, thread_name_prefix="program")


@dataclass
class World:
    """One agent's token, and the team that decides about it."""

    url: str
    agent: str = field(default_factory=lambda: unique("teller"))
    team: Group = field(default_factory=lambda: make_team(may=MEMBER))
    owner: User = field(init=False)
    token: str = field(init=False)

    def __post_init__(self) -> None:
        self.owner = make_user("Olga Owner", self.team)
        _, self.token = make_token(self.owner, team=self.team, agent=self.agent)

    @property
    def env(self) -> dict[str, str]:
        return {"HOLDPOINT_URL": self.url, "HOLDPOINT_TOKEN": self.token}

    @property
    def python_env(self) -> dict[str, str]:
        """The same for one in Python that has the client as it is here."""
        return {**self.env, "PYTHONPATH": f"{ROOT / 'clients' / 'python' / 'src'}:{ROOT}"}

    def client(self, **more: Any) -> Holdpoint:
        """A client with short leases, so that no test waits for a long one."""
        return Holdpoint(self.url, self.token, **{"lease": 1.0, **more})

    def awaited(self, **more: Any) -> AsyncHoldpoint:
        return AsyncHoldpoint(self.url, self.token, **{"lease": 1.0, **more})

    def runs(self, program: Callable[[Holdpoint], T], **more: Any) -> Future[T]:
        def do() -> T:
            with self.client(**more) as hp:
                return program(hp)

        return POOL.submit(do)

    def awaits(self, program: Callable[[AsyncHoldpoint], Coroutine[Any, Any, T]], **more: Any) -> Future[T]:
        async def do() -> T:
            async with self.awaited(**more) as hp:
                return await program(hp)

        return POOL.submit(lambda: asyncio.run(do()))

    def allowed(self, hp: Holdpoint, **more: Any) -> int:
        """Ask to wire, and have people approve it; return the gate's number."""
        gate = hp.approve.defer("wire", WIRE, **more).id
        self.decides()
        return gate

    def gate(self, kind: str = "review") -> Gate:
        asking = Gate.objects.open().filter(team=self.team, kind=kind)
        found = until(lambda: asking.order_by("-pk").first(), what=f"a {kind} gate opens")
        assert found is not None
        return found

    def decides(self, verdict: str = "approve", *, kind: str = "review", **said: Any) -> Gate:
        gate = self.gate(kind)
        decide(gate, verdict, **said)
        return gate


def ended(run: int) -> dict[str, Any]:
    """The state of a run that has ended well."""
    row = Run.objects.select_related("plan").get(pk=run)
    assert row.status == "completed", (row.status, row.reason)
    return load(row).state


INVOICE: dict[str, Any] = {"state": {"invoice": 7}, "title": "Pay invoice 7", "pinned": ["amount"]}


def wires(hp: Holdpoint, **more: Any) -> Got:
    with hp.approve("wire", WIRE, **INVOICE, **more) as call:
        call.done({"id": "tx_1"})
    return got_of(call)


async def wires_awaited(hp: AsyncHoldpoint, **more: Any) -> Got:
    async with hp.approve("wire", WIRE, **INVOICE, **more) as call:
        await call.done({"id": "tx_1"})
    return got_of(call)


def got_of(call: Call | AsyncCall) -> Got:
    got: Got = {"arguments": call.arguments, "key": call.key, "changes": call.changes, "edits": call.edits}
    return got | {"by": call.decision.by, "comment": call.decision.comment, "run": call.run}
