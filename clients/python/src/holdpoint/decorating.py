"""`@hp.requires_approval`: makes a function run only after people have approved its call, with their arguments."""

from __future__ import annotations

import copy
import inspect
import re
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from string import Formatter
from types import MethodType, SimpleNamespace
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, get_type_hints, overload

from pydantic import BaseModel, ConfigDict, Field, PydanticUserError, TypeAdapter, create_model

from .approvals import Approval, AsyncApproval, D_co, Later, Pending, named_defer, post_deferred
from .awaiting import Way
from .calls import RESULT, Allowed, AsyncCall, Call, read_arguments
from .drivers import Tasks, Threads, told_as
from .errors import AlreadyDone, Answered
from .posting import Posting, Risk, Schemas, post_gate, question
from .sending import Api, Op

P = ParamSpec("P")
Q = ParamSpec("Q")
T = ParamSpec("T")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
S = TypeVar("S")
KEY = "key"  # the parameter that gets the idempotency key, where a function has one
VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


@dataclass(frozen=True, kw_only=True)
class Terms:
    """Make a function ask first: it runs once people have approved it, with the arguments as they approved them.

    `title` and `amount` may name its arguments: "Wire {amount} to {to}". `pinned` names those that are shown first,
    `draws` those that are shown as a diff or a command, see Ask.
    `respond`: people may answer instead, and the answer is returned. `idempotent`: it may be sent twice under one key.
    `undo` is called when people send the run back, with those of its arguments, `result` and `key` that it names.
    `timeout`: seconds to wait for people. A parameter `key` of the function gets the idempotency key, and is no
    parameter of the decorated function. The other terms are those of `hp.approve`, and it raises the same.
    """

    title: str = ""
    summary: str = ""
    amount: str = ""
    risk: Risk = "medium"
    reasons: Sequence[str] = ()
    pinned: Sequence[str] = ()
    draws: Sequence[Mapping[str, str]] = ()
    respond: bool = False
    idempotent: bool = False
    undo: Callable[..., Any] | None = None
    policy: str = ""
    agent: str = ""
    team: str = ""
    thread: str = ""
    timeout: float | None = None


class Guarded:
    """A function and its terms: builds the gate of a call, and runs the call that was approved."""

    def __init__(self, api: Api, function: Callable[..., Any], terms: Terms, *, method: bool = False) -> None:
        self.api, self.terms = api, terms
        self.signature = Signature(function, method=method)
        for text in (terms.title, terms.amount):
            self.signature.names_in(text)
        self.undo = inspect.signature(terms.undo) if terms.undo else None
        if self.undo is not None and (odd := [name for name in self.undo.parameters if name not in self._known()]):
            raise TypeError(f"The undo of {self.signature.name} is called with {self._known()}, not with {odd[0]}.")
        self.response = self.signature.response() if terms.respond else False

    def bound_to(self, obj: object) -> Guarded:
        """Return the same for this object's method."""
        found = copy.copy(self)
        found.signature = self.signature.bound_to(obj)
        return found

    def posting(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Posting:
        """Return the gate to post for a call with these arguments."""
        terms, name = self.terms, self.signature.name
        values = self.signature.bound(args, kwargs)
        first_line = (self.signature.doc or name).splitlines()[0]
        own = {
            "title": terms.title.format(**values) or first_line, "amount": terms.amount.format(**values),
            "respond": self.response,
            "undo": getattr(terms.undo, "__name__", "") if terms.undo else "",
        }  # fmt: skip
        return question(name, self.signature.sent(values), schema=self.signature.schema(), **{**vars(terms), **own})

    def opened(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Op[tuple[int, Mapping[str, Any]]]:
        """Post the gate, and return its number, and the arguments by action."""
        posting = self.posting(args, kwargs)
        turn = yield from post_gate(self.api, posting)
        return turn.gate or 0, posting.asked

    def way(self, gate: int, asked: Mapping[str, Any] | None = None) -> Op[Allowed]:
        """Return the effect that the gate approved, begun; it may be an undo."""
        terms = self.terms
        way = Way(self.api, gate, timeout=terms.timeout, undoes=terms.undo is not None, asked=asked)
        return (yield from way.allowed())

    def done(self, call: Call | AsyncCall) -> Any:
        """Call the function, or its undo, with the approved arguments; return its result, or a coroutine of it."""
        return self.signature.call(call.arguments, call.key) if call.undoes is None else self._undo(call)

    def result_of(self, refusal: Answered | AlreadyDone) -> Any:
        """Return the answer or the recorded result in the function's own type; as it came if it does not fit."""
        return self.signature.result(refusal.answer if isinstance(refusal, Answered) else refusal.result)

    def dressed(self, call: Callable[..., Any], defer: Callable[..., Any], resume: Callable[..., Any]) -> Any:
        """Give `call` the function's name and signature, without its key, and no way past the question."""
        signature, made = self.signature.asked, told_as(call, self.signature.function, self.signature.asked)
        decorated: Any = made
        decorated.defer, decorated.resume = defer, resume
        named_defer(defer, made.__qualname__, signature)
        of_gate = inspect.signature(Approved.resume)
        parameters = list(of_gate.parameters.values())[1:]
        returns = signature.return_annotation
        told_as(resume, Approved.resume, of_gate.replace(parameters=parameters, return_annotation=returns))
        resume.__qualname__ = f"{made.__qualname__}.resume"
        return made

    def _known(self) -> list[str]:
        return [*self.signature.names.values(), "result", KEY]

    def _undo(self, call: Call | AsyncCall) -> Any:
        """Call the undo with those of the arguments, the result and the key that it names."""
        if self.terms.undo is None or self.undo is None:
            raise AssertionError("the function has no undo")
        state, name = call.arguments, self.signature.name
        known = {
            **self.signature.values(state.get(name) or {}),
            "result": self.signature.result(state.get(name + RESULT)),
        }
        known[KEY] = call.key
        return self.terms.undo(
            **{parameter: known[parameter] for parameter in self.undo.parameters if parameter in known}
        )


class Approved(Protocol[P, R_co, D_co]):
    """A function that asks first. Raises what `hp.approve` does, except that an answer given instead is returned."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...

    def defer(self, *args: P.args, **kwargs: P.kwargs) -> D_co: ...

    def resume(self, gate: int) -> R_co:
        """Wait for people at the gate, run the approved call, and return its result."""

    @overload
    def __get__(self, obj: None, owner: object) -> Approved[P, R_co, D_co]: ...
    @overload
    def __get__(self: Approved[Concatenate[S, Q], R_co, D_co], obj: S, owner: object) -> Approved[Q, R_co, D_co]: ...


def called(io: Threads, guarded: Guarded) -> Any:
    """Return a function that asks first and waits for people."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return go_on(*io.run(guarded.opened(args, kwargs)))

    def defer(*args: Any, **kwargs: Any) -> Pending:
        return io.run(post_deferred(guarded.api, guarded.posting(args, kwargs)))

    def resume(gate: int) -> Any:
        return go_on(gate)

    def go_on(gate: int, asked: Mapping[str, Any] | None = None) -> Any:
        while True:
            try:
                approval = Approval(io, guarded.way(gate, asked), Call)
            except (Answered, AlreadyDone) as refusal:
                return guarded.result_of(refusal)
            with approval as call:
                result = guarded.done(call)
                call.done(result)
                if call.undoes is None:
                    return result

    return guarded.dressed(call, defer, resume)


def awaited(io: Tasks, guarded: Guarded) -> Any:
    """Return a coroutine function that asks first."""

    async def call(*args: Any, **kwargs: Any) -> Any:
        return await go_on(*await io.run(guarded.opened(args, kwargs)))

    async def defer(*args: Any, **kwargs: Any) -> Pending:
        return await io.run(post_deferred(guarded.api, guarded.posting(args, kwargs)))

    async def resume(gate: int) -> Any:
        return await go_on(gate)

    async def go_on(gate: int, asked: Mapping[str, Any] | None = None) -> Any:
        while True:
            async with AsyncExitStack() as block:
                approval = AsyncApproval(io, lambda: guarded.way(gate, asked), AsyncCall)
                try:
                    call = await block.enter_async_context(approval)
                except (Answered, AlreadyDone) as refusal:
                    return guarded.result_of(refusal)
                given = guarded.done(call)
                result = await given if inspect.isawaitable(given) else given
                await call.done(result)
                if call.undoes is None:
                    return result

    return guarded.dressed(call, defer, resume)


class Method:
    """A method that asks first; bound to an object it is a function, and the gate leaves the object out."""

    def __init__(self, guarded: Guarded, build: Callable[[Guarded], Any]) -> None:
        self._guarded, self._build = guarded, build
        self.__name__, self.__doc__ = guarded.signature.name, guarded.signature.doc

    def __get__(self, obj: Any, owner: object = None) -> Any:
        """Return the function bound to this object."""
        return self if obj is None else self._build(self._guarded.bound_to(obj))

    def __call__(self, obj: Any, /, *args: Any, **kwargs: Any) -> Any:
        return self.__get__(obj)(*args, **kwargs)


class Requiring(Protocol[T]):
    """The decorator: takes terms, or the function alone."""

    @overload
    def __call__(self, function: Callable[P, R], /) -> Approved[P, R, Pending]: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, *args: T.args, **kwargs: T.kwargs) -> Callable[[Callable[P, R]], Approved[P, R, Pending]]: ...


class AsyncRequiring(Protocol[T]):
    """The decorator of coroutine functions."""

    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, function: Callable[P, Coroutine[Any, Any, R]], /
    ) -> Approved[P, Coroutine[Any, Any, R], Later]: ...
    @overload
    def __call__(
        self, *args: T.args, **kwargs: T.kwargs
    ) -> Callable[[Callable[P, Coroutine[Any, Any, R]]], Approved[P, Coroutine[Any, Any, R], Later]]: ...


def make_requiring(io: Threads, api: Api, terms: Callable[T, Terms]) -> Requiring[T]:
    """Make the decorator of a client."""
    made: Requiring[T] = _decorator(api, partial(called, io), terms, awaits=False)
    return made


def requiring_awaited(io: Tasks, api: Api, terms: Callable[T, Terms]) -> AsyncRequiring[T]:
    """Return the same for a client that is awaited."""
    made: AsyncRequiring[T] = _decorator(api, partial(awaited, io), terms, awaits=True)
    return made


def _decorator(api: Api, build: Callable[[Guarded], Any], terms: Callable[..., Terms], *, awaits: bool) -> Any:
    def requires_approval(function: Callable[..., Any] | None = None, /, **said: Any) -> Any:
        wanted = terms(**said)

        def decorated(function: Callable[..., Any]) -> Any:
            if inspect.iscoroutinefunction(function) and not awaits:
                raise TypeError(f"{function.__name__} is awaited, and this client is not: take an AsyncHoldpoint.")
            if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
                raise TypeError(
                    f"{function.__name__} yields its results, which are reported at once. Return them all, as a list."
                )
            # It stands in a class's body and takes `self`: it is not yet bound to the class.
            outer = function.__qualname__.rpartition(".")[0]
            takes_self = list(inspect.signature(function).parameters)[:1] == ["self"]
            method = bool(outer) and not outer.endswith("<locals>") and takes_self
            guarded = Guarded(api, function, wanted, method=method)
            return Method(guarded, build) if method else build(guarded)

        return decorated if function is None else decorated(function)

    signature = inspect.signature(terms)
    told_as(requires_approval, requires_approval, signature.replace(return_annotation="the function, which asks first"))
    requires_approval.__doc__ = Terms.__doc__
    return requires_approval


class Signature:
    """The arguments and the result of a function. `method`: its first parameter is its object, which no gate shows."""

    def __init__(self, function: Callable[..., Any], *, method: bool = False) -> None:
        self.function = function
        self.name = function.__name__
        self.doc = inspect.getdoc(function) or ""
        found = inspect.signature(function)
        parameters = list(found.parameters.values())[1 if method else 0 :]
        self.signature = found.replace(parameters=parameters)
        hints = _hints(function, *found.parameters)
        returned, self.returns = _result_of(function)
        taken = {parameter.name: parameter for parameter in parameters if parameter.name != KEY}
        if odd := [name for name, parameter in taken.items() if parameter.kind in VARIADIC]:
            raise TypeError(
                f"{self.name} takes any number of {', '.join(odd)}; name its arguments, so people see them."
            )
        # The signature for people and models: with real types instead of their names, and without the key.
        shown = [
            parameter.replace(annotation=hints.get(name, parameter.annotation)) for name, parameter in taken.items()
        ]
        self.asked = found.replace(parameters=shown, return_annotation=returned)
        # By alias, since names may clash with a model's own.
        fields: dict[str, Any] = {
            f"a{number}": (hints.get(name, Any), Field(alias=name)) for number, name in enumerate(taken)
        }
        self.names = dict(zip(fields, taken, strict=True))
        self.model = create_model(self.name, __config__=ConfigDict(extra="forbid"), **fields)

    def bound_to(self, obj: object) -> Signature:
        """Return the signature of this object's method."""
        found = copy.copy(self)
        found.function = MethodType(self.function, obj)
        return found

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the arguments."""
        found: dict[str, Any] = self.model.model_json_schema(mode="serialization", schema_generator=Schemas)
        return found

    def response(self) -> dict[str, Any]:
        """Return the JSON Schema of its result. Raises TypeError where its type has none."""
        try:
            if self.returns is not None:
                return self.returns.json_schema(mode="serialization", schema_generator=Schemas)
        except PydanticUserError:
            pass
        name = inspect.formatannotation(self.signature.return_annotation).strip("'")
        raise TypeError(
            f"{self.name} returns {name}, which people cannot answer instead: leave respond out, or return a model."
        )

    def result(self, result: Any) -> Any:
        """Return a result that was recorded or answered, in the function's own type; as it came if it does not fit."""
        try:
            return result if self.returns is None else self.returns.validate_python(result)
        except ValueError:
            return result

    def bound(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of a call by name, defaults included. Raises TypeError, ValueError."""
        found = self.asked.bind(*args, **kwargs)
        found.apply_defaults()
        model = self.model.model_validate(found.arguments)
        return {name: getattr(model, field) for field, name in self.names.items()}

    def sent(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments as JSON."""
        found: dict[str, Any] = self.model.model_validate(values).model_dump(mode="json", by_alias=True)
        return found

    def names_in(self, template: str) -> None:
        """Raise ValueError if a template names something that is not an argument."""
        named = [field for _, field, _, _ in Formatter().parse(template) if field is not None]
        if odd := [field for field in named if re.split(r"[.\[]", field)[0] not in self.names.values()]:
            raise ValueError(f"{template!r} names {{{odd[0]}}}; {self.name} takes {', '.join(self.names.values())}.")

    def call(self, arguments: Mapping[str, Any], key: str) -> Any:
        """Call the function with the approved arguments. Raises NotDone if they do not fit, and whatever it raises."""
        values = {**self.values(arguments), KEY: key}
        bound = self.signature.bind_partial()
        bound.arguments.update({name: values[name] for name in self.signature.parameters})
        return self.function(*bound.args, **bound.kwargs)

    def values(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments by name, in the function's types. Raises NotDone where they do not fit."""
        model: BaseModel = read_arguments(TypeAdapter(self.model), arguments)
        return {name: getattr(model, field) for field, name in self.names.items()}


def _hints(function: Callable[..., Any], *names: str) -> dict[str, Any]:
    """Resolve these annotations of a function. Raises what resolving them raises."""
    written = {
        name: annotation for name, annotation in getattr(function, "__annotations__", {}).items() if name in names
    }
    params = getattr(function, "__type_params__", ())
    part = SimpleNamespace(__annotations__=written, __wrapped__=function, __type_params__=params)
    return get_type_hints(part, include_extras=True)


def _result_of(function: Callable[..., Any]) -> tuple[Any, TypeAdapter[Any] | None]:
    """Return the annotation of the result, and its type: any without one, or with None; None for an unknown one.

    Only typing may know it: its name is imported for type checkers alone, or pydantic cannot describe the class.
    """
    returned: Any = inspect.Signature.empty
    try:
        returned = _hints(function, "return").get("return", returned)
        return returned, TypeAdapter(Any if returned in (inspect.Signature.empty, type(None)) else returned)
    except Exception:  # noqa: BLE001 - the annotation is evaluated, and the class has hooks of its own
        return returned, None
