"""What authors of resource agents work with (`crm agent`): one action by hand, lint, the matrix of trials, scaffolds.

No daemon is asked and none has to run.
"""
