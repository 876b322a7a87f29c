"""What an agent or a mail writes to deceive whoever reads it."""
