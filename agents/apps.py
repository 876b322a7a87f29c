from django.apps import AppConfig


class AgentsConfig(AppConfig):
    """The clients: whoever writes agents, and what runs them."""

    name = "agents"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Listen for the doorbell, offer the agents' own code as the truth about edits, and have effects verified."""
        from agents.models.effect import BEGUN, Effect
        from approvals.consequences import impact_sources
        from approvals.webhooks import ringing
        from checkpoints.audit import covered_rows
        from checkpoints.retention import batch, strays
        from checkpoints.signals import run_needs_attention

        from . import doorbell, forgetting, impacts, lineages, preflights, validation
        from .views import beside

        run_needs_attention.connect(doorbell.on_attention, dispatch_uid="agents.doorbell")
        validation.register()
        preflights.register()
        impact_sources.register(impacts.history_of, lineages.stamp_of, beside.repeats_of)
        ringing.register(doorbell.ring_for_delivery)
        effects = Effect.objects.all()
        of_run = effects.order_by("pk").values_list("pk", flat=True)
        covered_rows.register(
            covered_rows.Cover(
                "effect", effects.covered, effects.after, BEGUN, of_run=lambda run: list(of_run.filter(run=run))
            )
        )
        batch.along(forgetting.memos)
        strays.look_in(forgetting.named_in)
