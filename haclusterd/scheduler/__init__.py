"""(cib, now) to transition graph and its reasons."""
