from .channel_state import ChannelState, NoticeCursor
from .message import Message, MessageAttempt, MessageEnd
from .preference import ChannelAddress, NotificationPreference

__all__ = [
    "ChannelAddress",
    "ChannelState",
    "Message",
    "MessageAttempt",
    "MessageEnd",
    "NoticeCursor",
    "NotificationPreference",
]
