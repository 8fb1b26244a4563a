"""Processes and threads of this daemon, and how it starts them.

Spawning into control groups, captured output, worker processes, forked images, measured loops.
"""
