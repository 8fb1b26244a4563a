"""The client outside the nodes: writes a number, and the next when that was acknowledged or could not be.

It connects to the address that follows the primary. What was not answered in time is not written again: it may be
there or not. One line of output a write, times in ns of CLOCK_MONOTONIC:

    h ASKED ENDED 1 NODE NUMBER      acknowledged
    h ASKED ENDED 0 REASON NUMBER    not
"""

import sys
import time

from tests.databases.stores import STORES, Store, reason

CONNECT_S, ANSWER_S = 0.25, 0.5


def main(kind: str, address: str, period_ms: int) -> None:
    """Write for ever."""
    store: Store | None = None
    number = 0
    due = time.monotonic()
    while True:
        number += 1
        asked = time.monotonic_ns()
        try:
            if store is None:
                store = STORES[kind](address, CONNECT_S)
            store.write(number, ANSWER_S)
            is_good, what = 1, store.node
        except OSError as error:
            if store is not None:
                store.close()
            store, is_good, what = None, 0, reason(error)
        sys.stdout.write(f"h {asked} {time.monotonic_ns()} {is_good} {what} {number}\n")
        sys.stdout.flush()
        due = max(due + period_ms / 1000, time.monotonic())
        time.sleep(max(0.0, due - time.monotonic()))


if __name__ == "__main__":
    try:
        main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    except (BrokenPipeError, KeyboardInterrupt):
        sys.exit(0)
