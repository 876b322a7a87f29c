"""Merkle paths prove what is there and nothing else."""

from __future__ import annotations

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from checkpoints.seals import merkle

LEAVES = st.lists(
    st.binary(min_size=1, max_size=8).map(lambda data: hashlib.sha256(data).digest()), min_size=1, max_size=70
)


def rfc6962(leaves: list[bytes]) -> bytes:
    """The tree's root as RFC 6962, section 2.1, defines it."""
    if len(leaves) == 1:
        return leaves[0]
    split = 1 << (len(leaves) - 1).bit_length() - 1
    return hashlib.sha256(b"\1" + rfc6962(leaves[:split]) + rfc6962(leaves[split:])).digest()


@given(LEAVES)
def test_the_root_is_that_of_the_rfc(leaves: list[bytes]) -> None:
    assert merkle.root(leaves) == rfc6962(leaves)


@given(LEAVES, st.data())
def test_every_leaf_leads_to_the_root_at_its_own_place_alone(leaves: list[bytes], data: st.DataObject) -> None:
    tree = merkle.levels(leaves)
    index = data.draw(st.integers(0, len(leaves) - 1))
    path = merkle.path(tree, index)
    assert merkle.climb(leaves[index], index, len(leaves), path) == tree[-1][0]
    other = data.draw(st.integers(-1, len(leaves) + 1))
    if not 0 <= other < len(leaves) or leaves[other] != leaves[index]:
        assert merkle.climb(leaves[index], other, len(leaves), path) != tree[-1][0]


@given(LEAVES, st.data())
def test_another_leaf_or_a_path_that_was_changed_leads_elsewhere(leaves: list[bytes], data: st.DataObject) -> None:
    tree = merkle.levels(leaves)
    index = data.draw(st.integers(0, len(leaves) - 1))
    path = merkle.path(tree, index)
    root = tree[-1][0]
    assert merkle.climb(bytes(32), index, len(leaves), path) != root
    assert merkle.climb(leaves[index], index, len(leaves), [*path, bytes(32)]) != root
    for at in range(len(path)):
        assert merkle.climb(leaves[index], index, len(leaves), path[:at] + path[at + 1 :]) != root
        assert merkle.climb(leaves[index], index, len(leaves), [*path[:at], bytes(32), *path[at + 1 :]]) != root
