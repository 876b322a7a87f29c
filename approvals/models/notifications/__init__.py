from .address import ChannelAddress
from .notice import Notice, NoticeEnd
from .notifier import ChannelState, NoticeCursor
from .preference import NotificationPreference

__all__ = ["ChannelAddress", "ChannelState", "Notice", "NoticeCursor", "NoticeEnd", "NotificationPreference"]
