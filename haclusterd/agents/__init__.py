"""What agents in Python share, and the programs that watch GPUs and measure machines.

Imports nothing of the rest of the package and, at its import, nothing but the standard library: an agent runs in a
process of its own, and must not fail for a dependency of the daemon.
"""
