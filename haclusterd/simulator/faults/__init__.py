"""What goes wrong, and when: each kind of fault, drawn from the seed before the run begins."""
