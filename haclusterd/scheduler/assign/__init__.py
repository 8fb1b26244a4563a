"""Where each instance goes, and in which role."""
