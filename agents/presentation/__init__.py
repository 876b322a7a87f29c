"""The content of the run pages as plain data: no queries, no request, so that tables can test it."""
