"""Raft on the wire and on the disk: its core, journal, snapshots, frames and connections.

What a store promises is a port (`ports/store.py`); nothing here knows what the entries mean.
"""
