"""Arbitrary values, states and writes."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from checkpoints.values.ops import DROP, Append, Splice

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0.0, -0.0, 1.0, 1, True, 1e16, 1e-5, 2**63, -(2**63), 2**64, "\0", "\u2028", "@1:ab", "#0"]),
    text,
    st.integers(0, 60).map(lambda n: "large " * n * 20),
)
values: st.SearchStrategy[Any] = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(text, inner, max_size=5), max_leaves=12
)
lists = st.lists(values, max_size=12)
names = st.sampled_from(["a", "b", "messages", "übrig", "x/y~z", "=", ""])
states = st.dictionaries(names, values | lists, max_size=5)


@st.composite
def writes(draw: st.DrawFn, state: dict[str, Any]) -> dict[str, Any]:
    """What a step might write on top of `state`: lists begin, grow, are trimmed in the middle or replaced."""
    made: dict[str, Any] = {}
    for name in draw(st.lists(names, max_size=3, unique=True)):
        old = state.get(name)
        if isinstance(old, list) and draw(st.integers(0, 3)):
            start = draw(st.integers(0, len(old)))
            delete = draw(st.integers(0, len(old) - start))
            splice = Splice(start, delete, draw(lists))
            made[name] = draw(st.sampled_from([splice, Append(draw(lists)), old[start:], [*old, *splice.items]]))
        elif old is None and draw(st.booleans()):
            made[name] = draw(st.one_of(lists.map(Append), lists.map(lambda items: Splice(0, 0, items))))
        else:
            made[name] = draw(st.one_of(values, lists, st.just(DROP)))
    return made


def after(state: dict[str, Any], written: dict[str, Any]) -> dict[str, Any]:
    """The state after these writes, worked out the plain way."""
    made = dict(state)
    for name, write in written.items():
        if write is DROP:
            made.pop(name, None)
        elif isinstance(write, Append):
            made[name] = [*(made.get(name) or []), *write.items]
        elif isinstance(write, Splice):
            old = made.get(name) or []
            made[name] = [*old[: write.start], *write.items, *old[write.start + write.delete :]]
        else:
            made[name] = write
    return made
