"""What comes before what, and what becomes impossible with it."""
