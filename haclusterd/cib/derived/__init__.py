"""What follows from applied entries for people, and decides nothing: facts of the history, alerts, availability."""
