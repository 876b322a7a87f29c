"""Acts on lists of gates: bulk decisions, saved views and snoozed gates."""
