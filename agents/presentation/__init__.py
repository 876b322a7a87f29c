"""What the run pages show, as plain data: no queries, no request, so that tables can test it."""
