from .decision import Decision
from .gate import Gate, Proposal
from .outcome import Grant, Outcome
from .policy import Policy

__all__ = ["Decision", "Gate", "Grant", "Outcome", "Policy", "Proposal"]
