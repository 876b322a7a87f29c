"""Finds what a mutation may change in a module, finds it again by its source, and plants the change in the text.

A site is an expression or a simple statement of a function's own body. It is named by the function's qualified name,
its source as `ast.unparse` writes it, and its number among equal ones: lines may move. Messages, logging, crash points
and assertions are no sites, and neither is what stands in an f-string, whose position Python 3.11 does not know.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from itertools import chain
from typing import NamedTuple

Function = ast.FunctionDef | ast.AsyncFunctionDef
LONGEST = 110  # characters of a site's source
UNTOUCHED = ("_", "gettext", "ngettext", "log", "logger", "logging", "crash_points")  # whatever these call
STATEMENTS = ("return value", "call removed", "assignment removed")  # operators on statements; others take expressions
OPPOSITES: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
FALSY = {"bool": "False", "int": "0", "str": "''", "bytes": "b''", "list": "[]", "dict": "{}", "tuple": "()"}


class Gone(Exception):
    """The place of a mutation is there no more: name where it is now, or say why it is gone."""


class Site(NamedTuple):
    """A place in a module's text, and the source of what may stand there instead."""

    function: str
    operator: str
    node: ast.expr | ast.stmt
    before: str
    after: str
    occurrence: int


def functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, Function]]:
    """Yield every function with its qualified name."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Function):
            yield prefix + node.name, node
            yield from functions(node, f"{prefix}{node.name}.<locals>.")
        else:
            yield from functions(node, f"{prefix}{node.name}." if isinstance(node, ast.ClassDef) else prefix)


def places(function: Function) -> Iterator[ast.expr | ast.stmt]:
    """Yield the expressions and simple statements of a function's own body, in their order."""
    waiting: list[ast.AST] = list(reversed(function.body))
    while waiting:
        node = waiting.pop()
        if isinstance(node, Function | ast.ClassDef | ast.JoinedStr | ast.Raise | ast.Assert) or _is_untouched(node):
            continue
        if isinstance(node, ast.expr | ast.Return | ast.Assign | ast.AugAssign | ast.Expr):
            yield node
        if isinstance(node, ast.AnnAssign):
            waiting += [node.value] if node.value else []
        else:
            waiting += reversed(list(ast.iter_child_nodes(node)))


def _is_untouched(node: ast.AST) -> bool:
    call = node.value if isinstance(node, ast.Expr) else node
    return isinstance(call, ast.Call) and ast.unparse(call.func).split(".")[0] in UNTOUCHED


def _is_message(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value


def sites(source: str) -> Iterator[Site]:
    """Yield all that may be changed in a module, each with what each operator makes of it."""
    before: Counter[tuple[str, bool, str]] = Counter()
    for name, function in functions(ast.parse(source)):
        conditions = {id(node.test) for node in ast.walk(function) if isinstance(node, ast.If | ast.IfExp)}
        for node in places(function):
            text, is_statement = ast.unparse(node), isinstance(node, ast.stmt)
            occurrence = before[name, is_statement, text]
            before[name, is_statement, text] += 1
            if len(text) > LONGEST or any(_is_untouched(inner) or _is_message(inner) for inner in ast.walk(node)):
                continue
            changes = changed_statements(node, function) if is_statement else changed_expressions(node)
            if id(node) in conditions:
                changes = chain(changes, [("condition constant", "True"), ("condition constant", "False")])
            yield from (Site(name, operator, node, text, after, occurrence) for operator, after in changes)


def changed_statements(node: ast.AST, function: Function) -> Iterator[tuple[str, str]]:
    """Yield what may stand in a statement's place, after the operator's name."""
    if isinstance(node, ast.Return) and node.value and not isinstance(node.value, ast.Constant):
        kind = ast.unparse(function.returns).partition("[")[0] if function.returns else ""
        yield "return value", f"return {FALSY.get(kind, 'None')}"
    elif isinstance(node, ast.Return) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, bool):
        yield "return value", f"return {not node.value.value}"
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield "call removed", "pass"
    elif isinstance(node, ast.AugAssign) or (
        isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute | ast.Subscript)
    ):
        yield "assignment removed", "pass"


def changed_expressions(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield what may stand in an expression's place, after the operator's name."""
    match node:
        case ast.Compare(ops=[only]) if type(only) in OPPOSITES:
            yield "comparison", ast.unparse(ast.Compare(node.left, [OPPOSITES[type(only)]()], node.comparators))
        case ast.BoolOp():
            other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield "and for or", ast.unparse(ast.BoolOp(other, node.values))
            for index in range(len(node.values)):
                rest = [value for place, value in enumerate(node.values) if place != index]
                yield "operand dropped", ast.unparse(ast.BoolOp(node.op, rest) if rest[1:] else rest[0])
        case ast.UnaryOp(op=ast.Not()):
            yield "not removed", ast.unparse(node.operand)
        case ast.Constant(value=int()) if not isinstance(node.value, bool):
            yield "number", str(node.value + 1)
            yield "number", str(node.value - 1)
        case ast.Call():
            for index, keyword in enumerate(node.keywords):
                value = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
                if isinstance(value, bool) and ast.unparse(node.func) != "zip":  # whose `strict` is never noticed
                    other_call = deepcopy(node)
                    other_call.keywords[index].value = ast.Constant(not value)
                    yield "flag", ast.unparse(other_call)
                if keyword.arg and isinstance(node.func, ast.Attribute) and node.func.attr in ("filter", "exclude"):
                    kept = [*node.keywords[:index], *node.keywords[index + 1 :]]
                    yield "filter dropped", ast.unparse(ast.Call(node.func, node.args, kept))


def locate(source: str, function: str, operator: str, before: str, occurrence: int) -> ast.expr | ast.stmt:
    """Return the node of a site. Raises Gone."""
    kind = ast.stmt if operator in STATEMENTS else ast.expr
    nodes = (node for name, known in functions(ast.parse(source)) if name == function for node in places(known))
    same = [node for node in nodes if isinstance(node, kind) and ast.unparse(node) == before]
    if len(same) <= occurrence:
        raise Gone(f"{function} has {len(same)} times `{before}`, and {occurrence + 1} are needed")
    return same[occurrence]


def spliced(source: str, node: ast.expr | ast.stmt, text: str) -> str:
    """Return the module with `text` in the node's place; its other lines stay as they are."""
    lines = source.encode().splitlines(keepends=True)
    first, last = node.lineno - 1, (node.end_lineno or 0) - 1
    rest = lines[last][node.end_col_offset :]
    new = text if isinstance(node, ast.stmt) else f"({text})"
    lines[first : last + 1] = [lines[first][: node.col_offset] + new.encode() + rest]
    result = b"".join(lines).decode()
    ast.parse(result)
    return result
