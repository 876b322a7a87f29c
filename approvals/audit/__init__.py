"""The audit as people read it: who may, what is listed, and how it is verified, exported and erased from."""
