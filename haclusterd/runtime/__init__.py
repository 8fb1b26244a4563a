"""The shell that turns events into steps and effects into port calls."""
