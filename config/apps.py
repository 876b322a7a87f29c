"""Django's administration, with Holdpoint's site: a module of its own, since apps are named before models load."""

from django.contrib.admin.apps import AdminConfig


class AdministrationConfig(AdminConfig):
    """The administration."""

    default_site = "config.administration.Site"

    def ready(self) -> None:
        """Connect the handler of failed sign-ins and the seals of second factors, besides Django's own set-up."""
        from allauth.mfa.models import Authenticator
        from django.contrib.auth.signals import user_login_failed
        from django.db.models.signals import pre_save

        from approvals.accounts.factors import seal_factor
        from config.sign_in.attempts import on_failure

        super().ready()
        user_login_failed.connect(on_failure, dispatch_uid="config.sign_in.attempts")
        pre_save.connect(seal_factor, sender=Authenticator, dispatch_uid="approvals.accounts.factors")
