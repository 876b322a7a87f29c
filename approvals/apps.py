from django.apps import AppConfig


class ApprovalsConfig(AppConfig):
    name = "approvals"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Have a prune spare what people uploaded and nothing names yet."""
        from checkpoints.retention import strays

        from . import uploads

        strays.look_in(uploads.named_in)
