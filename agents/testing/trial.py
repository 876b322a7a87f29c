"""A trial: one run of an agent, driven by a test, with a team whose people are created when a test first names them."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from typing import Any, Self

from django.contrib.auth.models import Group, Permission, User

from agents.definition import outputs, registry
from agents.definition.agent import Agent
from agents.errors import AgentError
from agents.models import Effect, Failure
from agents.moves import child_orders
from agents.ringing import doorbell
from agents.runner import engine, version_upgrade
from agents.runs.start import start_run
from agents.session import child_runs
from agents.waits import signals, step_waits
from approvals.cards.card import Card
from approvals.decisions import deciding
from approvals.decisions.submission import Submission
from approvals.gates import closing
from approvals.models import Gate, Policy, versions
from checkpoints import actors, store
from checkpoints.access.permissions import DECIDE_GATE, REWIND_RUN, START_RUN, VIEW_RUN
from checkpoints.models import Checkpoint, Run
from checkpoints.runs.plans import PlanSpec

MAY = (VIEW_RUN, START_RUN, REWIND_RUN, DECIDE_GATE)  # of the people of a trial
REVIEWER = "reviewer"
TURNS = 200  # times that the run is taken on before it is said to go round


class TrialStuck(AssertionError):
    """The run is not where the test expects it; the message says where it is, and why."""


@dataclass(frozen=True, slots=True)
class Performed:
    """One effect: the step, its status ("done", "failed", "unknown", "undone", …), and the fields it wrote."""

    step: str
    status: str
    key: str
    wrote: dict[str, Any]
    error: str = ""


class Trial:
    """A run of `agent`, from its input on; see the package."""

    starts: tuple[type[Agent], ...]
    parent: Trial | None  # the trial of the run that started this one
    _at = ""  # the step of the gate at which the next decision is made; "": the oldest

    def __init__(
        self,
        agent: type[Agent],
        input: Mapping[str, Any] | None = None,
        /,
        *,
        config: Mapping[str, Any] | None = None,
        quorum: int = 1,
        team: str = "",
        starts: Sequence[type[Agent]] = (),
        **fields: Any,
    ) -> None:
        """Start a run of `agent` on these fields of its State, and take it on until it asks somebody or has ended.

        `input`: fields whose names are options here. `quorum`: how many people have to approve at each of its gates.
        `team`: the team's name. `starts`: the classes of the runs that its steps start, which are taken on with it.
        Raises AgentError where the class cannot be used, InputRefused where the input does not fit.
        """
        self.starts, self.parent = tuple(starts), None
        self._know(agent)
        self.team = make_team(team or agent.team, [agent.spec for agent in self.known.agents.values()], quorum=quorum)
        with self._world():
            self.row = start_run(
                agent.name,
                {**(input or {}), **fields},
                by=actors.of_user(make_person("starter", self.team)),
                team=self.team,
                started_by=make_person("starter", self.team),
                config=config,
            )
            self._go_on()

    # What the run is

    @property
    def status(self) -> str:
        """Return "waiting" at a gate, for a time or for a signal; or "completed", "failed", "cancelled"."""
        return str(self._fresh().status)

    @property
    def reason(self) -> str:
        """Return the reason why it ended, or does not go on."""
        return self._fresh().reason

    @property
    def title(self) -> str:
        """Return the run's title."""
        return self.row.title

    @property
    def version(self) -> str:
        """Return the agent's version that the run has now."""
        return self._fresh().plan.version

    @property
    def state(self) -> dict[str, Any]:
        """Return the saved state at its head, as JSON values."""
        return store.load(self._fresh()).state

    @property
    def steps(self) -> list[str]:
        """List the steps so far, oldest first; one that ran twice is there twice."""
        places = Checkpoint.objects.filter(run=self.row).order_by("seq")
        return [step for kind, step in places.values_list("kind", "step") if kind in ("step", "effect", "gate")]

    @property
    def effects(self) -> list[Performed]:
        """List its effects, undos included, oldest first."""
        rows = Effect.objects.filter(run=self.row).order_by("pk")
        return [
            Performed(row.step, row.status, row.key, dict(outputs.unpacked(row.returned).writes), row.error)
            for row in rows
        ]

    @property
    def children(self) -> list[Trial]:
        """List the runs that its steps started, oldest first; each takes the decisions at its own gates."""
        return [self._child(row) for row in Run.objects.filter(parent=self.row).order_by("pk")]

    @property
    def failures(self) -> list[str]:
        """List the errors of its steps, oldest first."""
        return [f"{row.step}: {row.error}" for row in Failure.objects.filter(run=self.row).order_by("pk")]

    @property
    def card(self) -> Card:
        """Return the card of its open gate. Raises TrialStuck where none is open."""
        return self._gate().standing().card

    @property
    def asks(self) -> str:
        """Return the step of the open gate; empty where none is open."""
        return next(iter(self.open_gates), "")

    @property
    def open_gates(self) -> list[str]:
        """List the steps of its open gates, oldest first: several where a gate has `waits=False`."""
        return list(Gate.objects.open().filter(run=self.row).order_by("pk").values_list("step", flat=True))

    def at(self, step: str) -> Self:
        """Return the same trial, whose next decision is made at the open gate `step`."""
        made = copy(self)
        made._at = step
        return made

    # What people say; each takes the run on, and returns it

    def approve(self, *, by: str = REVIEWER, comment: str = "") -> Self:
        """Approve all that is asked."""
        return self._decide(by, verdict="approve", comment=comment)

    def edit(self, action: str, value: Any = None, /, *, by: str = REVIEWER, comment: str = "", **fields: Any) -> Self:
        """Approve with other arguments for one action: `value` in their place, or `fields` over them."""
        arguments = self._action(action).arguments
        changed = {**arguments, **fields} if fields else value
        return self._decide(by, verdict="edit", arguments={action: changed}, comment=comment)

    def reject(self, comment: str, *, back_to: str = "", by: str = REVIEWER) -> Self:
        """Reject: the run goes back to the step that the gate or `back_to` names, else it ends."""
        then = "back" if back_to or self.card.on_reject else "stop"
        return self._decide(by, verdict="reject", comment=comment, then=then, back_to=back_to)

    def stop(self, comment: str, *, by: str = REVIEWER) -> Self:
        """Reject, and end the run."""
        return self._decide(by, verdict="reject", comment=comment, then="stop")

    def respond(self, action: str, response: Any, *, by: str = REVIEWER) -> Self:
        """Answer in the place of one action, and approve the others."""
        self._action(action)
        others = {item.id: {"verdict": "approve"} for item in self.card.actions if item.id != action}
        return self.decide({**others, action: {"verdict": "respond", "response": response}}, by=by)

    def decide(self, verdicts: Mapping[str, Mapping[str, Any]], *, then: str = "", by: str = REVIEWER) -> Self:
        """Decide, with a verdict for each action by its id: {"verdict": "approve" | "edit" | "reject" | "respond", …}.

        Where all of them are rejected, `then` is "stop" or "back".
        """
        return self._decide(by, verdicts=verdicts, then=then)

    def answer(self, choice: str, value: Any = None, *, by: str = REVIEWER) -> Self:
        """Answer the question that is asked after a failure: one of its choices, by id."""
        return self._decide(by, verdict="answer", answer={"choice": choice, "value": value})

    def expire(self) -> Self:
        """Let the open gate's deadline pass without an answer."""
        gate = self._gate()
        closing.pass_deadline(gate)
        with self._world():
            closing.expire(Gate.objects.get(pk=gate.pk))
            self._go_on()
        return self

    def wake(self) -> Self:
        """Let the time pass for which the run waits."""
        with self._world():
            step_waits.wake_now(self.row, by=actors.SYSTEM)
            self._go_on()
        return self

    def signal(self, name: str, value: Any = None, *, key: str = "") -> Self:
        """Send the run a signal; under the same `key` it is sent once."""
        with self._world():
            signals.send(self.row, name, value, key=key or secrets.token_hex(8), by=actors.SYSTEM)
            self._go_on()
        return self

    def upgrade(self, agent: type[Agent]) -> Self:
        """Deploy another version of the agent in the place of this one: its upcasters take the run over."""
        self._know(agent)
        with self._world():
            if not version_upgrade.wake(self._fresh()):
                raise TrialStuck(f"Version {agent.version} does not take the run over. {self._stands()}")
            self._go_on()
        return self

    # How

    def _decide(self, by: str, **said: Any) -> Self:
        gate = self._gate()
        with self._world():
            seen, key = bytes(gate.standing().digest), secrets.token_hex(8)
            deciding.decide(
                gate, Submission(seen=seen, key=key, second_look=True, **said), by=make_person(by, self.team)
            )
            self._go_on()
        return self

    def _go_on(self) -> None:
        """Take the run on as a worker would, without the waits, until it waits for a person or ends.

        With it goes whatever it started, and whatever started it.
        """
        first = self
        while first.parent is not None:
            first = first.parent
        for _ in range(TURNS):
            family = child_runs.family(first.row.pk)
            busy = [run for run in family if run.status in (Run.Status.QUEUED, Run.Status.RUNNING)]
            for run in busy:
                run.hurry()
                engine.advance(run.pk)
            ended = sum(child_orders.carry_out(run.pk) + child_orders.end_with(run.pk) for run in family)
            if not busy and not ended:
                return
        raise TrialStuck(f"The run was taken on {TURNS} times and does not come to rest. {self._stands()}")

    def _child(self, row: Run) -> Trial:
        made = object.__new__(Trial)
        made.starts, made.known, made.team, made.row, made.parent = self.starts, self.known, self.team, row, self
        return made

    def _gate(self) -> Gate:
        asked = Gate.objects.open().select_related("run__plan", "policy").filter(run=self.row).order_by("pk")
        gate = asked.filter(step=self._at).first() if self._at else asked.first()
        if gate is None:
            raise TrialStuck(f"The run asks nothing{f' at {self._at}' * bool(self._at)}. {self._stands()}")
        return gate

    def _action(self, action: str) -> Any:
        found = self.card.action(action)
        if found is None:
            known = ", ".join(action.id for action in self.card.actions) or "none"
            raise TrialStuck(f"The gate {self.asks} asks about no action {action}; its actions: {known}.")
        return found

    def _stands(self) -> str:
        """Describe where the run is, for a message."""
        run = self._fresh()
        at = (self.asks or run.next_step) * (run.status in Run.LIVE)
        words = [f"It is {run.status}" + (f" at {at}" if at else ""), *filter(None, [run.reason]), *self.failures[-1:]]
        return "; ".join(words) + "."

    def _know(self, agent: type[Agent]) -> None:
        self.known = registry.of_classes([agent, *self.starts])
        if self.known.faults:
            raise AgentError(" ".join(self.known.faults))

    def _fresh(self) -> Run:
        return Run.objects.select_related("plan").get(pk=self.row.pk)

    @contextmanager
    def _world(self) -> Iterator[None]:
        """Limit the registry to the agent on trial, and send no doorbells."""
        with registry.knowing(self.known), doorbell.silenced():
            yield


def make_team(name: str, specs: Iterable[PlanSpec], *, quorum: int) -> Group:
    """Create a new team, with each policy that the agents' gates name."""
    team = Group.objects.create(name=f"{name or 'Trial'} {secrets.token_hex(4)}")
    for word in MAY:
        app, _, codename = word.partition(".")
        team.permissions.add(Permission.objects.get(content_type__app_label=app, codename=codename))
    asked = {step.policy or "default" for spec in specs for step in spec.steps if step.kind == "gate"}
    for policy in asked | {"default"}:
        versions.write(Policy(team=team, name=policy, quorum=quorum, hourly=None, pause=None), by=actors.SYSTEM)
    return team


def make_person(name: str, team: Group) -> User:
    """Return the member of the team with this name in the test; create it on first use."""
    username = f"{name}-{team.pk}"[:150]
    found = User.objects.filter(username=username).first()
    if found is None:
        found = User.objects.create_user(username, first_name=name.capitalize()[:150])
        found.groups.add(team)
    return found
