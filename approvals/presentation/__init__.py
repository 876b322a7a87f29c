"""Prepares the pages of gates, the inbox and the audit for their templates."""
