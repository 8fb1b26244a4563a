"""Raft without threads, sockets, files or clocks: the core, its library's port, journal, snapshots, frames, queues.

What a store promises is a port (`ports/store.py`); nothing here knows what the entries mean. What touches the world
(the thread, TLS links, the library itself) is in `adapters/raft/`.
"""
