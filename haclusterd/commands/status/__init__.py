"""What the cluster is like now, in words: status, headlines, waits."""
