"""How this process's program is executed once more. Stdlib only: the pacer imports this."""

import os
import sys


def own_command() -> list[str]:
    """Return this process's command line as it is to be executed now; the first word is a path.

    A script that was installed names its interpreter in its first line. It is executed itself, so that after an upgrade
    that put another installation behind the same path (docs/howto/upgrade.md) that one's interpreter runs.
    """
    words = sys.orig_argv[1:]
    if words and not words[0].startswith("-") and os.path.isabs(words[0]) and os.access(words[0], os.X_OK):
        return words
    return [sys.executable, *words]
