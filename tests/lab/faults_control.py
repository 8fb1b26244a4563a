"""The positive controls: a second holder that every witness must see; if one does not, no row counts.

Once it is made by hand, behind the cluster's back; once by the cluster itself, robbed of all that prevents it: its
fence device only says that it shot, and a node without quorum goes on.
"""

import random
import time

from tests.lab.faults import Fault, Played, Verdict
from tests.lab.lab import Lab
from tests.lab.switch import SERVICE_ADDRESS
from tests.lab.witnesses import SERVICE_PORT, overlaps

DOUBLE_S = 2.0
SUCCESSOR_S = 30.0
LEAST_MS = 1_000
LEAST_ANSWERS = 10


def two_holders(lab: Lab, chance: random.Random) -> Played:
    """Bring address and service up on a machine beside the holder, behind the cluster's back."""
    machine = lab.machines[lab.others(lab.holder())[0]]
    assert machine.namespaces is not None
    inside = machine.namespaces.run
    inside("ip", "addr", "add", f"{SERVICE_ADDRESS}/24", "dev", "eth0")
    service = f"/usr/local/sbin/lab-service {SERVICE_PORT} {lab.beats.path} >/dev/null 2>&1 </dev/null & echo $!"
    pid = inside("sh", "-c", service).strip()
    time.sleep(DOUBLE_S)
    seen = _seen(lab)
    inside("kill", "-KILL", pid)
    inside("ip", "addr", "del", f"{SERVICE_ADDRESS}/24", "dev", "eth0")
    _judge(seen, lab)
    return Played(bound_ms=4_000)


def unprotected(lab: Lab, chance: random.Random) -> Played:
    """No fencing but in words, quorum ignored: a holder that is cut from its peers goes on beside its successor."""
    holder = lab.holder()
    lab.script("property no-quorum-policy=ignore")
    lab.power.is_lying = True
    for other in lab.others(holder):
        lab.switch.drop(lab.machines[other].index, lab.machines[holder].index)
        lab.switch.drop(lab.machines[holder].index, lab.machines[other].index)
    try:
        lab.until("a second holder", lambda: any(lab.machines[each].find("lab-service") for each in lab.others(holder)),
                  SUCCESSOR_S)  # fmt: skip
        time.sleep(DOUBLE_S)
        _judge(_seen(lab), lab)
    finally:
        lab.heal()
        # A daemon may be reset while it is asked; what stayed ignored would spoil every fault that comes after.
        lab.until("the policy to be as before", lambda: lab.takes("property no-quorum-policy=stop"), SUCCESSOR_S)
    return Played(may_be_fenced=tuple(lab.machines), bound_ms=60_000)


def _seen(lab: Lab) -> dict[str, list[int]]:
    return {
        "address": [span for _, _, span in overlaps(lab.addresses.held(), lab.began, on_one_node=False)],
        "service": [span for _, _, span in overlaps(lab.beats.held(), lab.began, on_one_node=True)],
    }


def _judge(seen: dict[str, list[int]], lab: Lab) -> None:
    contradictions = lab.client.contradictions(lab.began)
    for witness, spans in seen.items():
        assert max(spans, default=0) >= LEAST_MS, f"the witness of the {witness} is blind: {spans}"
    assert len(contradictions) >= LEAST_ANSWERS, f"the witness of ARP is blind: {len(contradictions)} contradictions"


FAULTS = (
    Fault("control-two-holders", Verdict.DETECTED, two_holders),
    Fault("control-unprotected", Verdict.DETECTED, unprotected),
)
"""Two at once; the witnesses are put to the test, the cluster is not."""
