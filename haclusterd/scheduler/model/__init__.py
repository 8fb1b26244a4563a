"""The terms of the scheduler: entities, settings, options, rules and dates."""
