"""Access control lists at work: what of the CIB a principal sees, what of a change they may make, and why."""
