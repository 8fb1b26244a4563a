"""Verbs about the past: events, versions of the configuration, transitions, operations, availability."""
