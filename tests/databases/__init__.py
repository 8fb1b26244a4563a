"""`make bench-databases`: real databases under stock agents, on machines of the lab, beside real Pacemaker."""
