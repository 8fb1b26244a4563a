"""Processes and threads of this daemon, and how they are started.

Spawning into control groups, captured output, worker processes, forked images, measured loops.
"""
