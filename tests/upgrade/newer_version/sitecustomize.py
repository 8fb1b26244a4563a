"""Makes every Python of a process tree a newer version of the program: it reads one feature level more.

For the test of mixed versions: put this directory on PYTHONPATH. In the newer level tickets are something new, so a
ticket's command is what older versions cannot read.
"""

from haclusterd.cib import codec, levels
from haclusterd.cib.commands import SetTicket

NEWER_LEVEL = codec.FEATURE_LEVEL + 1

levels.SINCE[SetTicket] = NEWER_LEVEL
codec.FEATURE_LEVEL = NEWER_LEVEL
