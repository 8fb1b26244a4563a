"""Devices of this machine: what they are, how they are, and what uses them, seen by processes that may hang."""
