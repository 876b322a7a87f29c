"""How the administration writes dates and times: as the pages do, with seconds, 24 hours and the reader's zone.

Django's own formats of a language overrule the settings, so these replace them. Pages of the product write
times by their own tag.
"""

DATE_FORMAT = SHORT_DATE_FORMAT = "j M Y"
TIME_FORMAT = "H:i:s"
DATETIME_FORMAT = SHORT_DATETIME_FORMAT = "j M Y, H:i:s T"
