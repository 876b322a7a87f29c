"""What the impact says, held against what then happens: random agents, random histories, random rewinds and edits."""
