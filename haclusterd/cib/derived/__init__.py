"""Derived from applied entries for users, without influence on decisions: history, alerts, availability."""
