"""Secrets in a daemon: agents get the values, and members that lack the secret key get it."""
