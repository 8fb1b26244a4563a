"""What may come next on a line, and what it means: for the interactive shell, bash, zsh and fish."""
