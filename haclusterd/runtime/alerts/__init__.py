"""Alerts in a daemon: starts the agents' calls, and reports their results."""
