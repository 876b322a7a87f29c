"""What a gate's page tells beside its actions: who agreed, who asks, what was said."""
