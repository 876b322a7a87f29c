"""What a process of the application tells whoever supervises it."""
