"""The values that everything else is about: frozen dataclasses, enums, and the tables of properties and of timers.

Nothing here does more than judge whether a value is valid, or say what follows from it alone.
"""
