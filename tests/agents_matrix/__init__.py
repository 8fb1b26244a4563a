"""Every stock agent that can run on this machine, run for real by this program's executor: `make agents-matrix`."""
