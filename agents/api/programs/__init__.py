"""The API of programs that work on runs from outside."""
