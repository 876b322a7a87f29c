"""Django's administration, with its own site: apart from that, since apps are named before they can be loaded."""

from django.contrib.admin.apps import AdminConfig


class AdministrationConfig(AdminConfig):
    """The administration."""

    default_site = "config.administration.Site"

    def ready(self) -> None:
        """Hear of failed sign-ins, besides what the administration does."""
        from django.contrib.auth.signals import user_login_failed

        from .sign_ins import on_failure

        super().ready()
        user_login_failed.connect(on_failure, dispatch_uid="config.sign_ins")
