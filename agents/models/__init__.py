from .answer import Answer
from .child_link import ChildLink
from .client import Client
from .effect import Effect
from .failure import Failure
from .memo import Memo
from .open_resource import OpenResource
from .registration import Registration
from .signal import Signal
from .spoken import Spoken
from .step_checkpoint import StepCheckpoint
from .sweeper import SweeperPass
from .token import DeviceRequest, Token, TokenScope
from .wait import Wait
from .worker import Worker

__all__ = [
    "Answer",
    "ChildLink",
    "Client",
    "DeviceRequest",
    "Effect",
    "Failure",
    "Memo",
    "OpenResource",
    "Registration",
    "Signal",
    "Spoken",
    "StepCheckpoint",
    "SweeperPass",
    "Token",
    "TokenScope",
    "Wait",
    "Worker",
]  # fmt: skip
