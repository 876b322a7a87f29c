"""What a gate's page shows beside its actions: who agreed, who asks, what was said."""
