from .child_link import ChildLink
from .client import Client
from .effect import Effect
from .graph_thread import GraphThread, ThreadCall, ThreadWrite
from .open_resource import OpenResource
from .step_checkpoint import Failure, Memo, Spoken, StepCheckpoint
from .token import Answer, DeviceRequest, Registration, Token, TokenScope
from .wait import Signal, Wait
from .worker import SweeperPass, Worker

__all__ = [
    "Answer", "ChildLink", "Client", "DeviceRequest", "Effect", "Failure", "GraphThread", "Memo", "OpenResource",
    "Registration", "Signal", "Spoken", "StepCheckpoint", "SweeperPass", "ThreadCall", "ThreadWrite", "Token",
    "TokenScope", "Wait", "Worker",
]  # fmt: skip
