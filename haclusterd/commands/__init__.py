"""What an administrator can do: pure verbs, equal live and offline."""
