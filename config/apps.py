"""Django's administration, with its own site: apart from that, since apps are named before they can be loaded."""

from django.contrib.admin.apps import AdminConfig


class AdministrationConfig(AdminConfig):
    """The administration."""

    default_site = "config.administration.Site"
