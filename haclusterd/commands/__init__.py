"""The administrator's verbs, pure."""
