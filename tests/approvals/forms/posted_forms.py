"""What a browser sends for a form, without a browser."""

from __future__ import annotations

from approvals.forms import Form, FormField, FormNode, ItemRows, ShapeChoice


def as_posted(form: Form) -> dict[str, str]:
    """What a browser sends for a form that nobody touched: CRLF, and U+FFFD for what HTML cannot say."""
    return {name: sent(text) for node in form.nodes for name, text in inputs(node).items()}


def sent(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\n", "\r\n").replace("\0", "\ufffd")


def inputs(node: FormNode) -> dict[str, str]:
    """The names and texts of one node's own inputs."""
    if isinstance(node, ItemRows):
        keys = {row.key_name: row.key for row in node.rows if row.key_name}
        return {node.order_name: node.order, node.window.name: str(node.window.page), **keys, **dict(node.carried)}
    if isinstance(node, ShapeChoice):
        return {node.name: node.chosen}
    if isinstance(node, FormField) and node.open and node.place.shown:
        zone = {node.zone_name: node.zone} if node.zone_name else {}
        return {node.name: node.text, **zone}
    return {}
