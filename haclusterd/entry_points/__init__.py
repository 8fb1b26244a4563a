"""Composition roots: pick adapters, run."""
