"""Verbs on nodes, members and the cluster as a whole."""
