"""What the run pages show, as plain data: no ORM, no request, so that tables can test it."""
