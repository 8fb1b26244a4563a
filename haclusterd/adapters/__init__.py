"""One file per foreign thing."""
