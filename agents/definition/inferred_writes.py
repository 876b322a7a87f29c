"""Infers the state fields that a step writes from the dict literals that it returns.

`return {"order": x}` and `return Jump("ask", {"order": x})` can be read; a dict that is built elsewhere cannot,
and then the step has to declare `writes=[…]`. Pure: source text in, names out.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from agents.errors import AgentError

STEPS = ("step", "effect", "gate")  # the decorators that take a title


@cache
def source_of(fn: Callable[..., Any]) -> str:
    """Return the dedented source of `fn`; AgentError where there is none to read."""
    try:
        return textwrap.dedent(inspect.getsource(inspect.unwrap(fn)))
    except (OSError, TypeError) as error:
        where = fn.__qualname__
        raise AgentError(f"The source of {where} cannot be read; declare agents in a module's file.") from error


@cache
def strip_title(source: str) -> str:
    """Return the source of a step without its decorator's title, so that a new title leaves the code hash as it is.

    That decorator is put on one line, as it would be written without the title; the rest is unchanged.
    """
    lines = source.encode().splitlines(keepends=True)
    for node in ast.parse(source).body[0].decorator_list:  # type: ignore[attr-defined]
        name = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
        if name.rpartition(".")[2] not in STEPS or all(keyword.arg != "title" for keyword in node.keywords):
            continue
        rest = [
            ast.get_source_segment(source, argument) or ""
            for argument in (*node.args, *node.keywords)
            if getattr(argument, "arg", "") != "title"
        ]
        bare = f"@{name}({', '.join(rest)})" if rest or name.rpartition(".")[2] != "step" else f"@{name}"
        after = lines[node.end_lineno - 1][node.end_col_offset :]
        lines[node.lineno - 1 : node.end_lineno] = [bare.encode() + after, *[b""] * (node.end_lineno - node.lineno)]
    return b"".join(lines).decode()


@cache
def infer_writes(fn: Callable[..., Any]) -> tuple[str, ...]:
    """List the fields that `fn` returns, in order of appearance. AgentError where they cannot be read."""
    tree = ast.parse(source_of(fn))
    function = tree.body[0]
    names: dict[str, None] = {}
    for returned in _returns(function):
        found = _names(returned)
        if found is None:
            raise AgentError(
                f"What {fn.__qualname__} writes cannot be read from `return {ast.unparse(returned)}`: "
                "return a dict literal or declare writes=[…]."
            )
        names |= dict.fromkeys(found)
    return tuple(names)


@cache
def jumps_of(fn: Callable[..., Any]) -> tuple[tuple[str, ...], bool]:
    """Return the steps that `fn` may jump to, and whether it may end the run. AgentError where they cannot be read."""
    found: dict[str, None] = {}
    ends = False
    for node in ast.walk(ast.parse(source_of(fn)).body[0]):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        ends = ends or name == "Done"
        if name == "Jump":
            given = [*node.args[:1], *(keyword.value for keyword in node.keywords if keyword.arg == "step")]
            if not (given and isinstance(given[0], ast.Constant) and isinstance(given[0].value, str)):
                raise AgentError(
                    f"Where {fn.__qualname__} jumps to cannot be read from `{ast.unparse(node)}`: declare jumps=[…]."
                )
            found[given[0].value] = None
    return tuple(found), ends


def config_of(fn: Callable[..., Any]) -> tuple[str, ...]:
    """List the names in `self.config.name` that `fn` uses; ("*",) where it takes the whole."""
    found: dict[str, None] = {}
    nodes = list(ast.walk(ast.parse(source_of(fn)).body[0]))
    named = [node for node in nodes if isinstance(node, ast.Attribute) and _is_config(node.value)]
    found |= dict.fromkeys(node.attr for node in named)
    whole = sum(1 for node in nodes if _is_config(node)) - len(named)
    return ("*",) if whole else tuple(found)


def always_asks(fn: Callable[..., Any]) -> bool:
    """Tell whether a gate is annotated `-> Card`, so that it must always ask."""
    annotation = inspect.signature(inspect.unwrap(fn)).return_annotation
    name = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    return name.rpartition(".")[2] == "Card"


def _is_config(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and node.attr == "config"
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
    )


def _returns(node: ast.AST) -> Iterator[ast.expr]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Return):
            if child.value is not None:
                yield child.value
        elif not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            yield from _returns(child)


def _names(node: ast.expr) -> list[str] | None:
    if isinstance(node, ast.Constant) and node.value is None:
        return []
    if isinstance(node, ast.IfExp):
        parts = [_names(node.body), _names(node.orelse)]
        return None if None in parts else [name for part in parts for name in part or []]
    if isinstance(node, ast.Dict):
        keys = [key.value for key in node.keys if isinstance(key, ast.Constant) and isinstance(key.value, str)]
        return keys if len(keys) == len(node.keys) else None
    if isinstance(node, ast.Call):
        return _called(node)
    return None


def _called(node: ast.Call) -> list[str] | None:
    name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
    if name == "dict" and not node.args and all(keyword.arg for keyword in node.keywords):
        return [keyword.arg for keyword in node.keywords if keyword.arg]
    if name in ("Jump", "Done"):
        rest = node.args[1:] if name == "Jump" else node.args
        given = [*rest, *(keyword.value for keyword in node.keywords if keyword.arg == "writes")]
        return _names(given[0]) if given else []
    return None
