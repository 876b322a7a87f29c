"""What a preview says before a move or a word at a gate, and what then happens."""
