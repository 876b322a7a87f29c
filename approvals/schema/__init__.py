"""JSON Schema: walked, validated, and with secrets redacted. Pure."""
