"""A gate's page: the proposal, the impact of each choice, and the form as typed so far."""
