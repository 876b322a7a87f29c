"""Who may see and order what: people by their teams, tokens within their scope."""
