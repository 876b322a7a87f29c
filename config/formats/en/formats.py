"""How the administration writes dates and times: in the order of ISO 8601, 24 hours, with the zone's offset.

Django's own formats of a language overrule the settings, so these stand in their place. Pages of the product say
times by their own tag.
"""

DATE_FORMAT = SHORT_DATE_FORMAT = "Y-m-d"
TIME_FORMAT = "H:i:s"
DATETIME_FORMAT = SHORT_DATETIME_FORMAT = "Y-m-d H:i:s O"
