"""What is asked of the world."""
