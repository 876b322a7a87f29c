from .answer import Answer
from .client import Client
from .effect import Effect
from .failure import Failure
from .memo import Memo
from .registration import Registration
from .spoken import Spoken
from .sweeper import SweeperPass
from .token import Token, TokenScope
from .worker import Worker

__all__ = [
    "Answer",
    "Client",
    "Effect",
    "Failure",
    "Memo",
    "Registration",
    "Spoken",
    "SweeperPass",
    "Token",
    "TokenScope",
    "Worker",
]  # fmt: skip
