"""Verbs that look back."""
