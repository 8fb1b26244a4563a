"""Sans-I/O brains: (state, event, now) to effects."""
