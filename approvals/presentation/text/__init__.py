"""Text that is not ours, and saved values, as HTML that is safe and honest."""
