"""`holdpoint inbox`: gates, decisions, runs and rewinds by the keyboard. Needs Textual."""
