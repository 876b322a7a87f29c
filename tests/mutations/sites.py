"""Finds what a mutation may change in a module, finds it again by its source, and changes the module's text.

A site is an expression or a simple statement of a function's own body. It is named by the function's qualified name,
its source as `ast.unparse` writes it, and its number among equal ones: lines may move. Messages, logging, crash points
and assertions are no sites, and neither is what stands in an f-string, whose position Python 3.11 does not know.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from copy import deepcopy

Function = ast.FunctionDef | ast.AsyncFunctionDef
Place = ast.expr | ast.stmt
LONGEST = 110  # characters of a site's source
UNTOUCHED = ("_", "gettext", "ngettext", "log", "logger", "logging", "crash_points")  # whatever these call
STATEMENTS = ("return value", "call removed", "assignment removed")  # operators on statements; others take expressions
OPPOSITES: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
FALSY = {"bool": "False", "int": "0", "str": "''", "bytes": "b''", "list": "[]", "dict": "{}", "tuple": "()"}


class Gone(Exception):
    """A mutation's place is not in the module: write in the list where it is now, or why it is gone."""


def functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, Function]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Function):
            yield prefix + node.name, node
            yield from functions(node, f"{prefix}{node.name}.<locals>.")
        else:
            yield from functions(node, f"{prefix}{node.name}." if isinstance(node, ast.ClassDef) else prefix)


def places(function: Function) -> Iterator[Place]:
    """Yield the expressions and simple statements of a function's own body, in their order."""
    waiting: list[ast.AST] = list(reversed(function.body))
    while waiting:
        node = waiting.pop()
        if isinstance(node, Function | ast.ClassDef | ast.JoinedStr | ast.Raise | ast.Assert) or _is_untouched(node):
            continue
        if isinstance(node, ast.expr | ast.Return | ast.Assign | ast.AugAssign | ast.Expr):
            yield node
        parts = [node.value] if isinstance(node, ast.AnnAssign) else ast.iter_child_nodes(node)
        waiting += reversed([part for part in parts if part])


def _is_untouched(node: ast.AST) -> bool:
    call = node.value if isinstance(node, ast.Expr) else node
    return isinstance(call, ast.Call) and ast.unparse(call.func).split(".")[0] in UNTOUCHED


def _is_message(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value


def find_sites(source: str) -> Iterator[tuple[str, str, str, str, int]]:
    """Yield each change that may be made: the function, the operator, the source before and after, the occurrence."""
    before: Counter[tuple[str, bool, str]] = Counter()
    for name, function in functions(ast.parse(source)):
        conditions = {id(node.test) for node in ast.walk(function) if isinstance(node, ast.If | ast.IfExp)}
        for node in places(function):
            text = ast.unparse(node)
            same = name, isinstance(node, ast.stmt), text
            occurrence = before[same]
            before[same] += 1
            if len(text) <= LONGEST and not any(_is_untouched(part) or _is_message(part) for part in ast.walk(node)):
                for operator, after in changes(node, function):
                    yield name, operator, text, after, occurrence
                if id(node) in conditions:
                    yield name, "condition constant", text, "True", occurrence
                    yield name, "condition constant", text, "False", occurrence


def changes(node: Place, function: Function) -> Iterator[tuple[str, str]]:
    """Yield the name of each operator that applies to a node, and what it makes of it."""
    match node:
        case ast.Return(value=ast.Constant(value=value)):
            if isinstance(value, bool):
                yield "return value", f"return {not value}"
        case ast.Return(value=ast.expr()):
            kind = ast.unparse(function.returns).partition("[")[0] if function.returns else ""
            yield "return value", f"return {FALSY.get(kind, 'None')}"
        case ast.Expr(value=ast.Call()):
            yield "call removed", "pass"
        case ast.AugAssign() | ast.Assign(targets=[ast.Attribute() | ast.Subscript(), *_]):
            yield "assignment removed", "pass"
        case ast.Compare(left, [operator], right) if type(operator) in OPPOSITES:
            yield "comparison", ast.unparse(ast.Compare(left, [OPPOSITES[type(operator)]()], right))
        case ast.BoolOp(operator, values):
            yield (
                "and for or",
                ast.unparse(ast.BoolOp(ast.Or() if isinstance(operator, ast.And) else ast.And(), values)),
            )
            for place in range(len(values)):
                rest = [*values[:place], *values[place + 1 :]]
                yield "operand dropped", ast.unparse(ast.BoolOp(operator, rest) if rest[1:] else rest[0])
        case ast.UnaryOp(ast.Not(), operand):
            yield "not removed", ast.unparse(operand)
        case ast.Constant(int(number)) if not isinstance(number, bool):
            yield "number", str(number + 1)
            yield "number", str(number - 1)
        case ast.Call(func, arguments, keywords):
            for place, keyword in enumerate(keywords):
                value = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
                if isinstance(value, bool) and ast.unparse(func) != "zip":  # whose `strict` is never noticed
                    other = deepcopy(node)
                    other.keywords[place].value = ast.Constant(not value)
                    yield "flag", ast.unparse(other)
                if keyword.arg and isinstance(func, ast.Attribute) and func.attr in ("filter", "exclude"):
                    rest_of_them = [*keywords[:place], *keywords[place + 1 :]]
                    yield "filter dropped", ast.unparse(ast.Call(func, arguments, rest_of_them))


def locate_site(source: str, function: str, operator: str, before: str, occurrence: int) -> Place:
    """Return the node of a site. Raises Gone."""
    kind = ast.stmt if operator in STATEMENTS else ast.expr
    nodes = (node for name, known in functions(ast.parse(source)) if name == function for node in places(known))
    same = [node for node in nodes if isinstance(node, kind) and ast.unparse(node) == before]
    if len(same) <= occurrence:
        raise Gone(f"{function} has {len(same)} times `{before}`, and {occurrence + 1} are needed")
    return same[occurrence]


def replace_source(source: str, node: Place, text: str) -> str:
    """Return the module's text with another in the node's place; its other lines stay as they are."""
    lines = source.encode().splitlines(keepends=True)
    first, last = node.lineno - 1, (node.end_lineno or 0) - 1
    new = text if isinstance(node, ast.stmt) else f"({text})"
    lines[first : last + 1] = [lines[first][: node.col_offset] + new.encode() + lines[last][node.end_col_offset :]]
    return b"".join(lines).decode()
