"""Programs that act on devices: the watcher runs them, and they may outlive it."""
