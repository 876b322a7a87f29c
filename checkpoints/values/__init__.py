"""Values of a state: their canonical form, digests, differences and the operations that change them."""
