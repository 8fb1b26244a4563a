"""What can be reported to a user, as coded values."""
