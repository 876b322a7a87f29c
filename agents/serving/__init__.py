"""Worker processes and the sweeper: they announce themselves, report their health, and find work that is due."""
