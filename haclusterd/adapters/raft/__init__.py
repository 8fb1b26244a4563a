"""Raft's contact with the outside: its thread, its connections, and the library (PySyncObj) below its core.

The core with journal, snapshots and frames is in `raft/`, and knows nothing of this.
"""
