"""Raft without threads, sockets, files or clocks: the core, its library's port, journal, snapshots, frames, queues.

The contract of a store is a port (`ports/store.py`); nothing here knows what the entries mean. Everything with side
effects (the thread, TLS links, the library itself) is in `adapters/raft/`.
"""
