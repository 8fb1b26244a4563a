"""Verbs on resources."""
