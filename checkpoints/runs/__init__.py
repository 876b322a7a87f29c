"""What belongs to runs beside their checkpoints: plans, names, holds and notes."""
