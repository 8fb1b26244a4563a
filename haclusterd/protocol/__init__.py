"""Framed, versioned messages."""
