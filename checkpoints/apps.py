from django.apps import AppConfig
from django.db.models.signals import post_migrate


class CheckpointsConfig(AppConfig):
    name = "checkpoints"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from checkpoints.postgresql.privileges import after_migrate

        post_migrate.connect(after_migrate, sender=self)
