"""Builds an agent's plan from its class, and refuses what cannot work before anything runs."""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

from pydantic import BaseModel, PydanticUserError, TypeAdapter

from agents.errors import AgentError
from approvals.engine_rules.permissions import DECISION
from approvals.presentation.text.invisible import pieces
from checkpoints.models.run import PRIORITIES
from checkpoints.runs.plans import PlanSpec, StepSpec

from . import environment, feedback, fields, invariants
from .agent import FREQUENCIES, Agent
from .decorators import MARK, Declaration, Method, Observation, Validator
from .inferred_writes import always_asks, config_of, infer_writes, jumps_of, source_of, strip_title

NAME = re.compile(r"[a-z][a-z0-9_-]{0,99}")
VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")
TITLE = 100  # characters
KEY = "key"  # the parameter of an effect that gets the idempotency key
OBSERVED = "observed"  # the parameter of a gate that gets what its observations gave, by name

Steps = dict[str, tuple[Callable[..., Any], Declaration]]


@cache
def plan_of(agent: type[Agent]) -> PlanSpec:
    """Return the agent's plan. Raises AgentError with a sentence that says what is wrong and where."""
    _check_agent(agent)
    feedback.check_answer(agent)
    steps = steps_of(agent)
    if not steps:
        raise AgentError(f"{agent.__name__} has no steps; decorate a method with @step.")
    specs = tuple(_spec(agent, name, *row) for name, row in steps.items())
    plan = PlanSpec(
        agent=agent.name,
        version=agent.version,
        doc=inspect.getdoc(agent) or "",
        state_schema=fields.schema_of(agent.State),
        steps=specs,
        signals=_signals(agent),
    )
    check_flow(plan)
    return plan


def steps_of(agent: type[Agent]) -> Steps:
    """Return the decorated methods in order of definition, inherited ones first."""
    found: Steps = {}
    for base in reversed(agent.__mro__):
        for name, method in vars(base).items():
            mark = getattr(method, MARK, None)
            if isinstance(mark, Declaration):
                found[name] = (method, mark)
    return found


def _signals(agent: type[Agent]) -> dict[str, Any]:
    """Return the JSON Schema of each signal's value."""
    found = {}
    for name, kind in agent.signals.items():
        if not NAME.fullmatch(name):
            raise AgentError(f"The agent {agent.name} has the signal {name!r}; use small letters, digits, - and _.")
        try:
            found[name] = {"type": "null"} if kind is None else TypeAdapter(kind).json_schema(mode="validation")
        except PydanticUserError as error:
            raise AgentError(f"The signal {name} of {agent.name} has a type without a JSON Schema: {error}") from error
    return found


def _check_agent(agent: type[Agent]) -> None:
    where = f"The agent {agent.__name__}"
    if not NAME.fullmatch(agent.name):
        raise AgentError(f"{where} needs a `name` of small letters, digits, - and _; it has {agent.name!r}.")
    if not isinstance(agent.version, str) or not VERSION.fullmatch(agent.version):
        raise AgentError(f"{where} needs a `version` of letters, digits, dots and dashes; it has {agent.version!r}.")
    if not isinstance(agent.at_once, int) or agent.at_once < 0:
        raise AgentError(f"{where} has at_once={agent.at_once!r}; write how many of its runs may work at once, or 0.")
    if type(agent.priority) is not int or agent.priority not in PRIORITIES:
        raise AgentError(
            f"{where} has priority={agent.priority!r}; write a number from 0, the most urgent, to {PRIORITIES[-1]}."
        )
    if not isinstance(agent.queue, str) or not NAME.fullmatch(agent.queue):
        raise AgentError(f"{where} has queue={agent.queue!r}; write small letters, digits, - and _.")
    state = getattr(agent, "State", None)
    if not (isinstance(state, type) and issubclass(state, BaseModel)):
        raise AgentError(f"{where} needs a class State, a pydantic BaseModel.")
    if agent.invariants not in invariants.WHEN:
        raise AgentError(f'{where} has invariants={agent.invariants!r}; it is "saves" or "edits".')
    if agent.checkpoints not in FREQUENCIES:
        raise AgentError(f'{where} has checkpoints={agent.checkpoints!r}; it is "steps", "milestones" or "effects".')
    named = [*steps_of(agent), *state.model_fields]
    for name in named:  # people read and compare them: letters beyond ASCII may only look like the ones they know
        if not name.isascii():
            raise AgentError(f"{where}: the name {name!a} has more than plain letters, digits and _; rename it.")
    for name, field in state.model_fields.items():
        if field.alias or field.validation_alias or field.serialization_alias:
            raise AgentError(f"{where}: the state field {name} has an alias; states are kept by field name.")


def _spec(agent: type[Agent], name: str, method: Callable[..., Any], declaration: Declaration) -> StepSpec:
    where = f"{agent.name}.{name}"
    step = StepSpec(name, **declaration.planned())
    writes = infer_writes(method) if declaration.writes is None else step.writes
    reads = _reads(agent, where, method, step)
    for _, wrong in faults_of(replace(step, reads=reads, writes=writes), agent.State.model_fields):
        raise AgentError(f"{'The effect ' * (step.kind == 'effect')}{where} {wrong}.")
    if step.kind == "effect":
        _check_effect(agent, where, step)
    for kind, names in ((Validator, step.validators), (Observation, step.observes)):
        for word in names:
            _method(agent, where, word, kind)
    _check_policies(where, step)
    _check_judged(agent, where, step, {*reads, *writes})
    found, ends = jumps_of(method)
    return replace(
        step,
        reads=reads,
        writes=writes,
        code_hash=_code_hash(agent, method, step, declaration),
        doc=inspect.getdoc(method) or "",
        feedback=feedback.list_of(agent, where, step, declaration.feedback),
        jumps=found if declaration.jumps is None else step.jumps,
        ends=ends,
        config=config_of(method),
        asks=step.kind == "gate" and always_asks(method),
        rings=step.rings if step.validators else 0,
    )


def faults_of(step: StepSpec, known: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield (option, fault) for a step in a state of `known` fields, of agents here and external ones alike."""
    named = [("reads", "reads", name) for name in step.reads]
    named += [("writes", "writes", name) for name in step.writes]
    named += [("edits", "lets people edit", name) for name in step.edits]
    named += [("responds", "takes answers into", step.responds)] if step.responds else []
    for option, does, name in named:
        if name not in known:
            yield option, f"{does} {name}, which is not a field of its state"
    if step.kind == "effect" and not step.undo and not step.irreversible:
        yield "", "has no undo and is not declared irreversible; give it one of the two"
    if step.kind == "effect" and step.undo and step.irreversible:
        yield "", "has an undo and is declared irreversible; keep one of the two"
    if not step.waits and step.kind != "gate":
        yield "waits", "has waits=False, which is for gates"
    if not step.waits and step.on_expire:
        yield "on_expire", "goes on while it asks, so it cannot jump when nobody answers; leave on_expire out"
    if step.action and step.action not in step.reads:  # or two actions would share a key
        yield "action", f"takes its action from {step.action}; let it read that field too"


def takes_observed(agent: type[Agent], step: StepSpec) -> bool:
    """Tell whether a gate's method takes the values of its observations before it draws its card."""
    method = getattr(agent, step.name, None)
    return (
        callable(method) and bool(step.observes) and OBSERVED in parameter_names(method) and OBSERVED not in step.reads
    )


def _reads(agent: type[Agent], where: str, method: Callable[..., Any], step: StepSpec) -> tuple[str, ...]:
    names = []
    for parameter in list(inspect.signature(method).parameters.values())[1:]:
        if step.kind == "effect" and parameter.name == KEY:
            continue
        if step.observes and parameter.name == OBSERVED and OBSERVED not in agent.State.model_fields:
            continue
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise AgentError(f"{where} takes *{parameter.name}; a step names each state field that it reads.")
        names.append(parameter.name)
    return tuple(names)


def _code_hash(agent: type[Agent], method: Callable[..., Any], step: StepSpec, declaration: Declaration) -> str:
    """Hash the source of the step, its helpers, validators, observations and `on_restore` methods, without its title.

    A changed validator makes another step, and so does a changed observation: an approval binds the values that the
    old one gave, and they must not be compared with those of the new one.
    """
    reopening = environment.reopening(agent, step)
    called = [getattr(agent, name) for name in (*step.validators, *step.observes, *reopening)]
    sources = [strip_title(source_of(method)), *(source_of(use) for use in (*declaration.uses, *called))]
    return hashlib.sha256("\0".join(sources).encode()).hexdigest()


def _check_policies(where: str, step: StepSpec) -> None:
    for word, least in (("retry", 0), ("timeout", 0), ("backoff", 0), ("loop_guard", 0), ("rings", 0), ("tries", 1)):
        if getattr(step, word) < least:
            raise AgentError(f"{where} has {word}={getattr(step, word)}; the least is {least}.")


def _check_judged(agent: type[Agent], where: str, step: StepSpec, known: set[str]) -> None:
    """Check that a validator reads only fields of the step: a change of others would not stop reuse of its output."""
    for name in step.validators:
        for field in parameter_names(getattr(agent, name)):
            if field not in known:
                raise AgentError(f"{where} is judged by {name}, which reads {field}; let the step read {field} too.")


def _check_effect(agent: type[Agent], where: str, step: StepSpec) -> None:
    if step.action and not step.guarded:
        raise AgentError(f"The effect {where} performs actions of a gate; it cannot be guarded=False.")
    if step.responds and not step.guarded:
        raise AgentError(f"The effect {where} takes answers, but nobody is asked about it: it is guarded=False.")
    if step.readable:
        reader = getattr(agent, step.readable, None)
        if not callable(reader) or hasattr(reader, MARK) or KEY not in parameter_names(reader):
            raise AgentError(f"The effect {where} is read back by {step.readable}, which is not a method with a `key`.")
        _check_reads(agent, f"{agent.name}.{step.readable}", reader)
    if not step.undo:
        return
    undo = getattr(agent, step.undo, None)
    if not callable(undo):
        raise AgentError(f"The effect {where} is undone by {step.undo}, which is not a method of the agent.")
    if isinstance(getattr(undo, MARK, None), Declaration):
        raise AgentError(f"The effect {where} is undone by {step.undo}, which is a step of the flow; make it a method.")
    _check_reads(agent, f"{agent.name}.{step.undo}", undo)


def _check_reads(agent: type[Agent], where: str, method: Callable[..., Any]) -> None:
    """Check that the parameters of a method that the runtime calls are state fields, as a step's are."""
    for name in parameter_names(method):
        if name != KEY and name not in agent.State.model_fields:
            raise AgentError(f"{where} reads {name}, which is not a field of the agent's State.")


def parameter_names(method: Callable[..., Any]) -> list[str]:
    """List the names of a method's parameters, without `self`."""
    return list(inspect.signature(method).parameters)[1:]


def _method(agent: type[Agent], where: str, name: str, kind: type[Method]) -> None:
    method = getattr(agent, name, None)
    if not (callable(method) and isinstance(getattr(method, MARK, None), kind)):
        raise AgentError(f"{where} names {name}, which is not a method with @{kind.__name__.lower()}.")
    _check_reads(agent, f"{agent.name}.{name}", method)


def check_flow(plan: PlanSpec) -> None:
    """Refuse a plan with names of missing steps, or with a guarded effect that no gate allows. Raises AgentError."""
    specs, by_name = plan.steps, {spec.name: spec for spec in plan.steps}
    _check_titles(plan)
    for spec in specs:
        after = {"catches with": [spec.catch], "goes on with": [spec.then], "jumps to": spec.jumps}
        for word, targets in after.items():
            for target in filter(None, targets):
                if target not in by_name:
                    raise AgentError(f"{plan.agent}.{spec.name} {word} {target}, which is not a step of the agent.")
        where = f"The gate {plan.agent}.{spec.name}"
        for allowed in spec.allows:
            if allowed not in by_name or by_name[allowed].kind != "effect":
                raise AgentError(f"{where} allows {allowed}, which is not an effect of the agent.")
        for word, target in (("on_reject", spec.on_reject), ("on_expire", spec.on_expire), ("on_skip", spec.on_skip)):
            if target and target not in by_name:
                raise AgentError(f"{where} names the unknown step {target} in {word}.")
        if spec.on_reject and by_name[spec.on_reject].kind == "gate":
            raise AgentError(f"{where} goes back to the gate {spec.on_reject}; name a step that can do better.")
        if spec.on_reject and by_name[spec.on_reject].irreversible:
            raise AgentError(f"{where} goes back to {spec.on_reject}, which cannot be undone; name a step before it.")
    allowed_ones = {name for spec in specs for name in spec.allows}
    for spec in specs:
        if spec.guarded and DECISION in spec.reads:
            raise AgentError(
                f"The effect {plan.agent}.{spec.name} reads {DECISION}, which is written after its approval; "
                "let a step before it read that."
            )
        if spec.guarded and spec.name not in allowed_ones:
            raise AgentError(
                f"No gate allows the effect {plan.agent}.{spec.name}; name it in a gate's `allows`, "
                "or declare it with guarded=False."
            )
    _check_catches(plan)


def _check_titles(plan: PlanSpec) -> None:
    """Check that each title is one short line of plain words and that no two are alike."""
    named: dict[str, str] = {}
    for spec in plan.steps:
        where = f"{plan.agent}.{spec.name}"
        if len(spec.title) > TITLE or any(piece.kind != "text" for piece in pieces(spec.title)) or "\n" in spec.title:
            raise AgentError(
                f"{where} has the title {spec.title[:TITLE]!a}; give it one line of plain words, "
                f"at most {TITLE} characters."
            )
        if (other := named.setdefault(spec.title.casefold(), spec.name)) != spec.name:
            raise AgentError(f"{where} and {other} are both called {spec.title}; give one of them another title.")


def _check_catches(plan: PlanSpec) -> None:
    for spec in plan.steps:
        if spec.catch and not spec.loop_guard and spec.name in plan.reachable(spec.catch):
            raise AgentError(
                f"{plan.agent}.{spec.name} catches with {spec.catch}, from where the run may come back to it; "
                "give it a loop_guard, or it may go round for ever."
            )
