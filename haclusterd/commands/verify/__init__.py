"""The judgement on a configuration: one file for each kind of finding."""
