"""People's accounts: how they prove who they are, where they are signed in, and what they chose."""
