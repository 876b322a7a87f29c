"""What a decision at a gate would do: for its page, for the API, and for the decision itself, which has to mean it."""
