from .decision import Decision
from .draft import Draft
from .gate import Gate
from .looking import Looking
from .outcome import Grant, Outcome
from .policy import Policy
from .proposal import Proposal
from .upload import Upload

__all__ = ["Decision", "Draft", "Gate", "Grant", "Looking", "Outcome", "Policy", "Proposal", "Upload"]
