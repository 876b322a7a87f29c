"""Typed forms for JSON values, both ways. Pure.

`build` walks a value, its JSON Schema and what was posted at once, and gives a tree of nodes: a `FormField` is one
input, a `FormGroup` an object, `ItemRows` a list or an object of free keys, a `ShapeChoice` a union or a
nullable value. Every node holds what to show and the value that it now gives; no second walk reads the form.

Names say where a value is: `args.refund/lines/2/amount`. The number is the item's place in the value as it was
rendered and stays with it wherever it is moved, new items are `~new1`; so an item keeps what was typed into it, and
a list's order is one more name, `args.refund!order/lines`. What was not posted stays as it is.

Text that comes back as it was rendered gives back the very value that was rendered, byte for byte: an input cannot
carry everything (a lone carriage return, U+0000), and a browser rewrites line breaks, so what was posted is compared
with what a browser would have sent, and only then read.

Values are not validated here: the agent's own validator decides. A schema is trusted as little as a value: patterns are
never run, references never fetched, and depth, breadth and the number of inputs are bounded.
"""

from . import names, texts, words
from .build import INPUTS, Form, all_nodes, build
from .names import applied
from .nodes import EDITABLE, MISSING, ClosedNode, FormField, FormGroup, FormNode, ItemRows, ShapeChoice, unit_in

__all__ = [
    "EDITABLE", "INPUTS", "MISSING", "ClosedNode", "Form", "FormField", "FormGroup", "FormNode", "ItemRows",
    "ShapeChoice", "all_nodes", "applied", "build", "names", "texts", "unit_in", "words",
]  # fmt: skip
