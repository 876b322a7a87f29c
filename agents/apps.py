from django.apps import AppConfig


class AgentsConfig(AppConfig):
    """The Django app for agents: their definitions, runs and workers."""

    name = "agents"
    default_auto_field = "django.db.models.BigAutoField"
    registered = False

    def ready(self) -> None:
        """Connect the doorbell, and register the agents' code, impacts, effects and retention with the other apps."""
        if AgentsConfig.registered:  # Django calls it again where INSTALLED_APPS changes
            return
        AgentsConfig.registered = True
        from agents.models.effect import BEGUN, Effect
        from agents.serving import sweeps
        from approvals.consequences import impact_sources, performed
        from approvals.notifications import delivering
        from approvals.webhooks import outbox
        from checkpoints.audit import covered_rows
        from checkpoints.models.run import run_needs_attention
        from checkpoints.retention import delete_batch, reading, stray_artifacts, unneeded_rows

        from .compatibility import edited_states, preflight
        from .effects import ledger
        from .moves import impact, impact_facts
        from .questions import answering
        from .ringing import doorbell
        from .runs import retention
        from .threads import orders, pending
        from .waits import unneeded

        run_needs_attention.connect(doorbell.on_attention, dispatch_uid="agents.ringing.doorbell")
        edited_states.register()
        answering.register()
        preflight.register()
        impact_sources.register(impact.history_of, impact_facts.stamp_of, ledger.repeats_of)
        performed.register(ledger.given, sweeps.why, ledger.done_alike)
        outbox.register(doorbell.ring_for_webhook)
        delivering.register(doorbell.ring_for_notices)
        covered_rows.register(covered_rows.CoveredTable(Effect, Effect.objects.covered, BEGUN))
        delete_batch.along(retention.memos)
        delete_batch.along(pending.go_along)
        reading.keep_also(orders.rebuilt_from)
        unneeded_rows.register(unneeded.find, *unneeded.MODELS)
        stray_artifacts.look_in(retention.named_in)
        stray_artifacts.mark_also(retention.named_by_teams)
