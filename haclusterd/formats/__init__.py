"""Text to model and back: one room for each grammar.

Between the rooms stands what all of them share: statements, references, generated ids.
"""
