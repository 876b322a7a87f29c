"""The administration's formats of dates and times: as on the pages, with seconds, 24 hours and the reader's zone.

Django's own formats of a language overrule the settings, so these replace them. The product's pages write times with
their own tag.
"""

DATE_FORMAT = SHORT_DATE_FORMAT = "j M Y"
TIME_FORMAT = "H:i:s"
DATETIME_FORMAT = SHORT_DATETIME_FORMAT = "j M Y, H:i:s T"
