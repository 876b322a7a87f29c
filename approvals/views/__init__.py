"""The pages of people who decide."""
