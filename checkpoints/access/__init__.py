"""Access control: people by their permissions in teams, tokens within their scope."""
