"""Verbs of the level `status`."""

from haclusterd.commands.verb import Verb

VERBS: tuple[Verb, ...] = ()
