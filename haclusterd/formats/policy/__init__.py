"""Policies in YAML: reading with places, writing."""
