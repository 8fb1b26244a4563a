"""REST, event stream, metrics."""
