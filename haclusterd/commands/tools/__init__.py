"""Pacemaker's command-line tools, as the daemon answers them: their words, read by a table, become existing verbs."""
