from django.apps import AppConfig


class ApprovalsConfig(AppConfig):
    name = "approvals"
    default_auto_field = "django.db.models.BigAutoField"
    registered = False

    def ready(self) -> None:
        """Register people's uploads, which a prune spares, the gates' rows, which the audit verifies, and channels."""
        if ApprovalsConfig.registered:  # Django calls it again where INSTALLED_APPS changes
            return
        ApprovalsConfig.registered = True
        from approvals.decisions import edit
        from checkpoints.audit import covered_rows
        from checkpoints.retention import stray_artifacts
        from checkpoints.store import named_files

        from .audit import evidence
        from .channels import registered
        from .models import Upload
        from .notifications import channel
        from .notifications.email import Email

        stray_artifacts.look_in(edit.named_in)
        named_files.look_in(Upload.objects.of_team)
        covered_rows.register(evidence.COVER)
        covered_rows.register(evidence.OF_POLICIES)
        channel.register(Email())
        registered.register()
