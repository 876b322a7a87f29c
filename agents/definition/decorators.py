"""The decorators that say what a method of an agent is: a step, or something that the runtime calls beside them.

They only attach what they were told; agents.definition.plan_builder reads it and refuses what cannot work, before
anything runs. Beside the steps there are methods that the runtime calls: an `undo` undoes an effect, an
`observation` looks at the world for a precondition, a `validator` judges what a step returned, an `upcast` turns an
older version's state into one of this version.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, overload

Function = TypeVar("Function", bound=Callable[..., Any])
MARK = "__holdpoint__"


@dataclass(frozen=True)
class Declaration:
    """The options that a decorator was given for one method."""

    kind: Literal["step", "effect", "gate"]
    title: str = ""
    writes: tuple[str, ...] | None = None
    uses: tuple[Callable[..., Any], ...] = ()
    reads_world: bool = False
    retry: int = 3  # further attempts after the first
    timeout: float = 300.0  # seconds
    backoff: float = 1.0  # seconds before the second attempt; doubles
    catch: str = ""
    loop_guard: int = 0
    jumps: tuple[str, ...] | None = None  # None: read from the source
    validators: tuple[str, ...] = ()
    rings: int = 1
    tries: int = 1
    readable: str = ""
    observes: tuple[str, ...] = ()
    undo: str = ""
    irreversible: bool = False
    idempotent: bool = False
    guarded: bool = True
    action: str = ""
    responds: str = ""
    then: str = ""
    policy: str = ""
    allows: tuple[str, ...] = ()
    edits: tuple[str, ...] = ()
    on_reject: str = ""
    on_expire: str = ""
    on_skip: str = ""
    feedback: str | None = None  # None: `feedback` where the state has such a list


@dataclass(frozen=True)
class Method:
    """The options that a decorator was given for a method that is no step."""

    kind: Literal["undo", "observation", "validator", "upcast"]
    idempotent: bool = False
    retry: int = 3
    timeout: float = 60.0  # seconds
    version: str = ""  # upcast: the version that it comes from
    steps: Mapping[str, str] = field(default_factory=dict)  # upcast: old name -> new name


@overload
def step(method: Function, /) -> Function: ...
@overload
def step(
    *,
    title: str = "",
    reads_world: bool = False,
    writes: Sequence[str] | None = None,
    uses: Sequence[Callable[..., Any]] = (),
    jumps: Sequence[str] | None = None,
    retry: int = 3,
    timeout: float = 300.0,
    backoff: float = 1.0,
    catch: str = "",
    loop_guard: int = 0,
    validators: Sequence[Any] = (),
    rings: int = 1,
    tries: int = 1,
    feedback: str | None = None,
) -> Callable[[Function], Function]: ...
def step(
    method: Any = None,
    /,
    *,
    title: str = "",
    reads_world: bool = False,
    writes: Sequence[str] | None = None,
    uses: Sequence[Callable[..., Any]] = (),
    jumps: Sequence[str] | None = None,
    retry: int = 3,
    timeout: float = 300.0,
    backoff: float = 1.0,
    catch: str = "",
    loop_guard: int = 0,
    validators: Sequence[Any] = (),
    rings: int = 1,
    tries: int = 1,
    feedback: str | None = None,
) -> Any:
    """Declare a unit of work. `reads_world`: it looks outside the state, so its output is never reused after a rewind.

    `title`: what reviewers call it; without one, its name in words ("ask_facts" is "Ask facts"). `retry`: further
    attempts after the first, `backoff` seconds apart and doubling, each ended after `timeout` seconds; when they have
    run out the run goes on with the step `catch`, or a person is asked. `loop_guard`: how often it may run on one path
    before a person is asked. `validators`: methods that judge what it returned; a refusal goes back to it `tries`
    times, then to the producers of its inputs, `rings` rings wide, with the validator's words in the state's list
    `feedback`; then to a person.
    """
    said = Declaration(
        "step",
        title,
        _names(writes),
        tuple(uses),
        reads_world=reads_world,
        jumps=_names(jumps),
        retry=retry,
        timeout=timeout,
        backoff=backoff,
        catch=catch,
        loop_guard=loop_guard,
        validators=_named(validators),
        rings=rings,
        tries=tries,
        feedback=feedback,
    )
    return _marked(said) if method is None else _marked(said)(method)


def effect(
    *,
    title: str = "",
    undo: Any = "",
    irreversible: bool = False,
    idempotent: bool = False,
    readable: Any = "",
    guarded: bool = True,
    action: str = "",
    responds: str = "",
    then: Any = "",
    writes: Sequence[str] | None = None,
    uses: Sequence[Callable[..., Any]] = (),
    jumps: Sequence[str] | None = None,
    retry: int = 3,
    timeout: float = 300.0,
    backoff: float = 1.0,
    loop_guard: int = 0,
) -> Callable[[Function], Function]:
    """Declare a step that changes the outside world. A parameter named `key` gets the idempotency key.

    `title`: what reviewers call it; without one, its name in words.
    `undo` names the method that undoes it; `idempotent`: the provider performs a key once, so that an unknown
    end may be tried again; `readable` names the method that asks the provider by key and returns what the effect
    would have returned, or None where it did not happen; `guarded=False`: it needs no gate's permission.
    `action`: where the effect performs several actions of one gate, one each time it runs, the field that holds
    the id of the next. `responds`: the field that a reviewer's answer in the effect's place is written to; an
    answer to one whose field is a list is an item of it. `then`: the step that comes after it, whether it was
    performed, passed by or answered for, where that is not the next in order.
    """
    said = Declaration(
        "effect",
        title,
        _names(writes),
        tuple(uses),
        jumps=_names(jumps),
        retry=retry,
        timeout=timeout,
        backoff=backoff,
        loop_guard=loop_guard,
        undo=_name(undo),
        irreversible=irreversible,
        idempotent=idempotent,
        readable=_name(readable),
        guarded=guarded,
        action=action,
        responds=responds,
        then=_name(then),
    )
    return _marked(said)


@overload
def undo(method: Function, /) -> Function: ...
@overload
def undo(*, idempotent: bool = False, retry: int = 3, timeout: float = 60.0) -> Callable[[Function], Function]: ...
def undo(method: Any = None, /, *, idempotent: bool = False, retry: int = 3, timeout: float = 60.0) -> Any:
    """Declare a method that undoes an effect. It reads the state as the effect left it; `key` is an idempotency key.

    An undo is an effect itself: an unknown end is tried again where it is `idempotent`, else a person is asked.
    """
    said = Method("undo", idempotent=idempotent, retry=retry, timeout=timeout)
    return _marked(said) if method is None else _marked(said)(method)


@overload
def observation(method: Function, /) -> Function: ...
@overload
def observation(*, timeout: float = 60.0) -> Callable[[Function], Function]: ...
def observation(method: Any = None, /, *, timeout: float = 60.0) -> Any:
    """Declare a method that looks at the world and changes nothing: it checks a precondition. Returns JSON values.

    A SecretStr or SecretBytes among them is compared and never kept or shown.
    It must leave out what the run itself does, or the run's own work looks like somebody else's. One that raises fails
    the step that wanted it: the gate, or the effect, whose attempts are tried again.
    """
    said = Method("observation", timeout=timeout)
    return _marked(said) if method is None else _marked(said)(method)


def validator(method: Function, /) -> Function:
    """Declare a method that judges a step's output: it reads the state as the step left it.

    Returns None where all is well, else what is wrong: a text, or a list of texts. It belongs to the steps that name
    it in `validators`, and is run by the runtime, never by the step.
    """
    return _marked(Method("validator"))(method)


def upcast(version: str, *, steps: Mapping[str, str] | None = None) -> Callable[[Function], Function]:
    """Declare a class method that brings a state of an older `version`, a dict of JSON values, up to this version.

    `steps` says which step is now called what. Put it under @classmethod.
    """
    return _marked(Method("upcast", version=version, steps=dict(steps or {})))


def gate(
    *,
    title: str = "",
    policy: str = "default",
    allows: Sequence[str] = (),
    edits: Sequence[str] = (),
    on_reject: Any = "",
    on_expire: Any = "",
    on_skip: Any = "",
    feedback: str | None = None,
    observes: Sequence[Any] = (),
    uses: Sequence[Callable[..., Any]] = (),
    retry: int = 3,
    timeout: float = 300.0,
    backoff: float = 1.0,
    loop_guard: int = 0,
) -> Callable[[Function], Function]:
    """Declare a step that asks people. The method returns the Card to show, or None where there is nothing to ask.

    `title`: what reviewers call it; without one, its name in words.

    One annotated `-> Card` must always ask; an impact then foretells nothing beyond it.

    `allows`: the effects that an approval permits; `edits`: the fields that a reviewer may change; `on_reject`: the
    step it goes back to unless the reviewer says another; `on_expire`: the step to go on with when nobody answered,
    `on_skip`: the one when there is nothing to ask;
    `observes`: the observations that its card may make preconditions of. A parameter named `observed` gets what they
    all gave when the gate was opened, by name, so that the card can say what is wrong already.
    """
    said = Declaration(
        "gate",
        title,
        (),
        tuple(uses),
        retry=retry,
        timeout=timeout,
        backoff=backoff,
        loop_guard=loop_guard,
        jumps=(),
        observes=_named(observes),
        policy=policy,
        allows=_named(allows),
        edits=tuple(edits),
        on_reject=_name(on_reject),
        on_expire=_name(on_expire),
        on_skip=_name(on_skip),
        feedback=feedback,
    )
    return _marked(said)


def _marked(said: Declaration | Method) -> Callable[[Function], Function]:
    def mark(method: Function) -> Function:
        setattr(method, MARK, said)
        return method

    return mark


def _name(step: Any) -> str:
    """Return a step's name, given as text or as the method itself."""
    return step if isinstance(step, str) else str(step.__name__)


def _named(steps: Sequence[Any]) -> tuple[str, ...]:
    return tuple(_name(each) for each in steps)


def _names(writes: Sequence[str] | None) -> tuple[str, ...] | None:
    return None if writes is None else tuple(writes)
