"""Decisions: reviewers' submissions, the proposals that they make, and their recording."""
