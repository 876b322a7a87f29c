from .address import ChannelAddress

__all__ = ["ChannelAddress"]
