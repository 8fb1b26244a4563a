"""Verbs that read and change the configuration, and what they have in common."""
