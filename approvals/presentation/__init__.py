"""What pages of gates, the inbox and the audit show, made ready for their templates."""
