"""The kinds of nodes of a form, a module each: how one is built from a schema, a value and what was posted."""
