"""The decorators of an agent's methods and their options, each declared once: its name, its type and its default.

A decorator takes the fields of its class as keywords, and attaches them to the method. A step's options go into its
StepSpec under the same names (`Declaration.planned`); agents.definition.plan_builder refuses what cannot work, before
anything runs. A plan that is posted takes its defaults from here too. The methods besides steps: an `undo` undoes an
effect, an `observation` looks at the world for a precondition, a `validator` judges what a step returned, an `upcast`
turns an older version's state into one of this version, an `on_restore` reopens what steps hold open.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import wraps
from typing import Any, ClassVar, ParamSpec, Protocol, TypeVar, cast, overload

Function = TypeVar("Function", bound=Callable[..., Any])
P = ParamSpec("P")
Name = str | Callable[..., Any]  # of a method, or the method itself
MARK = "__holdpoint__"


class Options:
    """The options given to one method's decorator."""

    def __call__(self, method: Function) -> Function:
        """Attach the options to the method."""
        setattr(method, MARK, self)
        return method


@dataclass(frozen=True, kw_only=True)
class Declaration(Options):
    """The options of every kind of step."""

    kind: ClassVar[str]
    title: str = ""
    writes: Sequence[str] | None = None  # None: read from the source, as `jumps`
    uses: Sequence[Callable[..., Any]] = ()
    jumps: Sequence[str] | None = None
    retry: int = 3  # further attempts after the first
    timeout: float = 300.0  # seconds
    backoff: float = 1.0  # seconds before the second attempt; doubles
    loop_guard: int = 0
    feedback: str | None = None  # None: `feedback` where the state has such a list

    def planned(self) -> dict[str, Any]:
        """Return the options as the plan holds them: lists as tuples, methods by name, None for the plan builder."""
        values = {field.name: _plain(getattr(self, field.name)) for field in fields(self) if field.name != "uses"}
        return {**values, "kind": self.kind, "timeout": float(self.timeout), "backoff": float(self.backoff)}


@dataclass(frozen=True, kw_only=True)
class StepOptions(Declaration):
    """Declare a unit of work. `reads_world`: it looks outside the state, so its output is never reused after a rewind.

    `title`: its name for reviewers; without one, the method's name in words ("ask_facts" is "Ask facts"). `retry`:
    further attempts after the first, `backoff` seconds apart and doubling, each ended after `timeout` seconds; after
    the last, the run goes on with the step `catch`, or a person is asked. `loop_guard`: how often it may run on one
    path before a person is asked. `validators`: methods that judge its output. After a refusal it runs again, `tries`
    times, with the validator's words in the state's list `feedback`; then the producers of its inputs do, `rings`
    rings wide; then a person is asked.
    `holds`: what it leaves open for later steps, such as "browser", each with a method under @on_restore that reopens
    it elsewhere; and environment variables that matter to it, such as "$TZ".
    `milestone`: its checkpoint is saved at once in an agent with `checkpoints = "milestones"`.
    """

    kind = "step"
    reads_world: bool = False
    catch: str = ""
    validators: Sequence[Name] = ()
    rings: int = 1
    tries: int = 1
    holds: Sequence[str] = ()
    milestone: bool = False


@dataclass(frozen=True, kw_only=True)
class EffectOptions(Declaration):
    """Declare a step that changes the outside world. A parameter named `key` gets the idempotency key.

    `title`: its name for reviewers; without one, the method's name in words.
    `undo` names the method that undoes it; `idempotent`: the provider performs a key once, so that an effect with an
    unknown end may be sent again; `readable` names the method that asks the provider by key and returns what the
    effect would have returned, or None where it did not happen; `guarded=False`: it needs no gate's permission.
    `action`: for an effect that performs several actions of one gate, one each time it runs, the field that holds
    the id of the next. `responds`: the field that a reviewer's answer in place of the effect is written to; if it is
    a list, the answer is one item of it. `then`: the step that follows, whether the effect was performed, skipped or
    answered, where that is not the next in order. `holds`: as in a step.
    """

    kind = "effect"
    undo: Name = ""
    irreversible: bool = False
    idempotent: bool = False
    readable: Name = ""
    guarded: bool = True
    action: str = ""
    responds: str = ""
    then: Name = ""
    holds: Sequence[str] = ()
    feedback: str | None = field(default="", init=False)


@dataclass(frozen=True, kw_only=True)
class GateOptions(Declaration):
    """Declare a step that asks people. The method returns the Card to show, or None where there is nothing to ask.

    `title`: its name for reviewers; without one, the method's name in words.

    A gate annotated `-> Card` must always ask; the preview of a move then ends at it.

    `allows`: the effects that an approval permits; `edits`: the fields that a reviewer may change; `on_reject`: the
    step to go back to unless the reviewer names another; `on_expire`: the step to go on with when nobody answered;
    `on_skip`: the step to go on with when there is nothing to ask;
    `observes`: the observations that its card may make preconditions of. A parameter named `observed` gets the values
    of all of them when the gate opens, by name, so that the card can say what is wrong already.
    `waits=False`: the run goes on while people decide, and several such gates may be open. What reads or writes a
    field that the decision may write, the effects that it allows, and the end of the run wait for the decision.
    """

    kind = "gate"
    policy: str = "default"
    allows: Sequence[Name] = ()
    edits: Sequence[str] = ()
    on_reject: Name = ""
    on_expire: Name = ""
    on_skip: Name = ""
    observes: Sequence[Name] = ()
    waits: bool = True
    writes: Sequence[str] | None = field(default=(), init=False)
    jumps: Sequence[str] | None = field(default=(), init=False)


def default_of(option: str) -> Any:
    """Return the default of a step's option as JSON has it, an empty list for what is otherwise read from the source.

    Raises KeyError where no decorator has it.
    """
    declared = {field.name: field for kind in (StepOptions, EffectOptions, GateOptions) for field in fields(kind)}
    found = declared[option].default
    return list(found) if isinstance(found, tuple) else found


@dataclass(frozen=True, kw_only=True)
class Method(Options):
    """The options of every method besides steps that the runtime calls."""

    timeout: float = 60.0  # seconds


@dataclass(frozen=True, kw_only=True)
class Undo(Method):
    """Declare a method that undoes an effect. It reads the state as the effect left it; `key` is an idempotency key.

    An undo is an effect itself: one with an unknown end is sent again if it is `idempotent`, else a person is asked.
    """

    idempotent: bool = False
    retry: int = 3


@dataclass(frozen=True, kw_only=True)
class Observation(Method):
    """Declare a method that looks at the world and changes nothing: it checks a precondition. Returns JSON values.

    A SecretStr or SecretBytes among them is compared and never kept or shown.
    It must leave out what the run itself does, or the run's own work looks like somebody else's. If it raises, the
    step that needed it (the gate or the effect) fails and is tried again.
    """


@dataclass(frozen=True, kw_only=True)
class Validator(Method):
    """Declare a method that judges a step's output: it reads the state as the step left it.

    Returns None where all is well, else the faults: a text, or a list of texts. The runtime calls it, never the step,
    for the steps that name it in `validators`.
    """


@dataclass(frozen=True, kw_only=True)
class Restore(Method):
    """Declare the method that reopens what steps hold under `name`. It gets the description that was kept.

    It returns what a step then gets by `self.held(name)`. If it raises, or returns None, the step fails as one that
    "cannot be restored", and a person is asked.
    """

    name: str = field(kw_only=False)


@dataclass(frozen=True)
class Upcast(Options):
    """Declare a class method that brings a state of an older `version`, a dict of JSON values, up to this version.

    `steps` maps old names of steps to new ones. Put it under @classmethod.
    """

    version: str
    steps: Mapping[str, str] | None = field(default=None, kw_only=True)  # old name -> new name


def _plain(value: Any) -> Any:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return tuple(map(_plain, value))
    return value.__name__ if callable(value) else value


class Decorator(Protocol[P]):
    """A decorator that is written with options, or bare."""

    @overload
    def __call__(self, method: Function, /) -> Function: ...
    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Callable[[Function], Function]: ...


def _bare(options: Callable[P, Options]) -> Decorator[P]:
    """Make a decorator that may be written without parentheses."""
    make: Callable[..., Options] = options

    @wraps(options, assigned=["__doc__"], updated=())
    def decorator(method: Any = None, /, **said: Any) -> Any:
        found = make(**said)
        return found if method is None else found(method)

    return cast(Decorator[P], decorator)


step = _bare(StepOptions)
effect = EffectOptions
gate = GateOptions
undo = _bare(Undo)
observation = _bare(Observation)
validator = Validator()
upcast = Upcast
on_restore = Restore
