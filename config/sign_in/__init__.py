"""Signing in: the rules for accounts and passwords, and the counting of failed attempts."""
