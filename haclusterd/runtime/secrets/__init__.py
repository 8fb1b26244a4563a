"""Secrets in a daemon: agents get their values, members that cannot open them the key."""
