"""Devices of this machine: what they are, their state, and their users, observed by processes that may hang."""
