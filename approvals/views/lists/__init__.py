"""What a reader does with lists of gates: bulk decisions, saved views and snoozed gates."""
