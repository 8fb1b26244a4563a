"""Reserved for the REST interface, the event stream and metrics: empty as yet."""
