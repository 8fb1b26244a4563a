"""The shell around the machines: turns events into steps, and effects into port calls."""
