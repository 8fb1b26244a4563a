"""Secrets in the replicated state: the commands that change them, and who needs them or their key."""
