"""The REST interface: a process of its own, which reaches the daemon through the control socket and no other way."""
