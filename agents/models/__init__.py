from .answer import Answer
from .child_link import ChildLink
from .client import Client
from .effect import Effect
from .failure import Failure
from .graph_thread import GraphThread, ThreadCall, ThreadWrite
from .memo import Memo
from .open_resource import OpenResource
from .registration import Registration
from .signal import Signal
from .spoken import Spoken
from .step_checkpoint import StepCheckpoint
from .token import DeviceRequest, Token, TokenScope
from .wait import Wait
from .worker import SweeperPass, Worker

__all__ = [
    "Answer",
    "ChildLink",
    "Client",
    "DeviceRequest",
    "Effect",
    "Failure",
    "GraphThread",
    "Memo",
    "OpenResource",
    "Registration",
    "Signal",
    "Spoken",
    "StepCheckpoint",
    "SweeperPass",
    "ThreadCall",
    "ThreadWrite",
    "Token",
    "TokenScope",
    "Wait",
    "Worker",
]  # fmt: skip
