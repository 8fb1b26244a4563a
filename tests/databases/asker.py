"""Asks the database of one machine, from inside that machine's network, whether it takes writes; over and over.

A database that takes writes does so until its process or its connection ends: it never becomes a copy on the way. So
between two answers over one connection it took them all the time. One line of output for each time of that kind, as
long as it grows; times in ns of CLOCK_MONOTONIC; GROUP are the nodes that take writes together, `-` this one alone:

    CONNECTION FIRST_ENDED LAST_ASKED GROUP
"""

import sys
import time

from tests.databases.stores import STORES, Store

PERIOD_S = 0.1
PATIENCE_S = 1.0


def main(kind: str) -> None:
    """Ask for ever."""
    store: Store | None = None
    connection, first, group = 0, 0, ""
    while True:
        asked = time.monotonic_ns()
        try:
            if store is None:
                connection += 1
                first = 0
                store = STORES[kind]("127.0.0.1", PATIENCE_S)
            before, group = group, store.takes_writes_with(PATIENCE_S)
            if group:
                first = first if first and group == before else time.monotonic_ns()
                sys.stdout.write(f"{connection} {first} {max(first, asked)} {group}\n")
                sys.stdout.flush()
            else:
                first = 0
        except OSError:
            if store is not None:
                store.close()
            store = None
        time.sleep(PERIOD_S)


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except (BrokenPipeError, KeyboardInterrupt):
        sys.exit(0)
