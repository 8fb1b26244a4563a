"""Secrets in the replicated state: what becomes of them by commands, and who needs them or their key."""
