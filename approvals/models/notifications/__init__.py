from .address import ChannelAddress
from .channel_state import ChannelState
from .cursor import NoticeCursor
from .message import Message, MessageAttempt, MessageEnd
from .preference import NotificationPreference

__all__ = [
    "ChannelAddress",
    "ChannelState",
    "Message",
    "MessageAttempt",
    "MessageEnd",
    "NoticeCursor",
    "NotificationPreference",
]
