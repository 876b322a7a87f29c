"""The error that stops the local stack, with a sentence for the person at the terminal."""


class StackRefused(Exception):
    """The stack cannot start; the message is one clear sentence, and nothing was left half-started."""
