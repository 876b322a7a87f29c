from .answer import Answer
from .client import Client
from .effect import Effect
from .failure import Failure
from .memo import Memo
from .registration import Registration
from .spoken import Spoken
from .sweeper import SweeperPass
from .token import Scope, Token
from .worker import Worker

__all__ = [
    "Answer", "Client", "Effect", "Failure", "Memo", "Registration", "Scope", "Spoken", "SweeperPass", "Token",
    "Worker",
]  # fmt: skip
