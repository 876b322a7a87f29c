"""The kinds of nodes of a form: a module for each, which builds it from a schema, a value and what was posted."""
