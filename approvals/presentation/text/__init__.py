"""Renders untrusted text and saved values as HTML that is safe and hides nothing."""
