"""A world for the runtime on a virtual clock."""
