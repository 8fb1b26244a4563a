"""What can be told to a user, as coded values."""
