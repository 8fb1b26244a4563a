"""Implementations of the ports: one file for each thing outside the program, and named for it.

Exceptions of the outside end here: what the rest of the program gets is a value.
"""
