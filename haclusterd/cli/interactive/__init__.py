"""`crm` on a terminal: how lines are read from a person, and what was typed before."""
