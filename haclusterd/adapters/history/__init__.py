"""History in SQLite on each node, and the event log beside it.

Tables, versions of the configuration, reading, comparing, repair.
"""
