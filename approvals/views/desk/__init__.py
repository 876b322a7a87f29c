"""Pages and forms of who is on a gate, and of who is away."""
