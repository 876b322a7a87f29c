"""Facts that a gate's page shows beside its actions: agreement, provenance, conversation, outcome."""
