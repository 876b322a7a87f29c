"""The decorators of an agent's methods: its steps, and other methods that the runtime calls.

They only attach their options (agents.definition.options); agents.definition.plan_builder reads those and refuses what
cannot work, before anything runs. The methods besides steps: an `undo` undoes an effect, an `observation` looks at the
world for a precondition, a `validator` judges what a step returned, an `upcast` turns an older version's state into one
of this version, an `on_restore` reopens what steps hold open.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, Protocol, cast, overload

from .options import (
    EffectOptions,
    Function,
    GateOptions,
    Observation,
    Options,
    Restore,
    StepOptions,
    Undo,
    Upcast,
    Validator,
)

P = ParamSpec("P")


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
