"""The replicated state machine: commands, `apply`, changes, codec."""
