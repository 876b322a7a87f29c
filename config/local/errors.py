"""What stops the local stack, in a sentence for whoever typed the command."""


class Refused(Exception):
    """The stack cannot start; the message is one clear sentence, and nothing was left half-started."""
