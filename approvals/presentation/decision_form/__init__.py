"""The form of a decision: the actions, the choices beside them, and the preview of their effects."""
