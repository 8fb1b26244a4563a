"""Tools for authors of resource agents (`crm agent`): running one action, lint, the matrix of trials, scaffolds.

They work without a daemon.
"""
