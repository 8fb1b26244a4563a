"""What must hold, judged by the hosts' truth, and what a run has exercised."""
