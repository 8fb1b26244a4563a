"""Alerts in a daemon: how the agents are called, and what becomes of a call."""
