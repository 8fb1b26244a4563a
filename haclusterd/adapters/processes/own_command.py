"""How this process's program is executed again. Stdlib only: the pacer imports this."""

import os
import sys


def own_command() -> list[str]:
    """Return this process's command line for another execution; the first word is a path.

    An installed script names its interpreter in its first line. The script itself is executed, so that after an upgrade
    that put another installation at the same path (docs/howto/upgrade.md) that one's interpreter is used.
    """
    words = sys.orig_argv[1:]
    if words and not words[0].startswith("-") and os.path.isabs(words[0]) and os.access(words[0], os.X_OK):
        return words
    return [sys.executable, *words]
