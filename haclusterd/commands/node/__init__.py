"""Verbs about nodes, their fencing, members, and the cluster as a whole."""
