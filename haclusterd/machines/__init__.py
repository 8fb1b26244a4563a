"""Sans-I/O state machines: (state, event, now) -> effects."""
