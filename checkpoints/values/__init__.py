"""Values of states: their canonical form, digests, differences and the operations that change them."""
