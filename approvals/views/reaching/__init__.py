"""Adds and removes the places where a person is reached, beside e-mail."""
