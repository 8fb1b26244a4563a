"""SDK for agents written in Python; stands alone."""
