"""The positive control: a second holder, made by hand, that every witness must see; if one does not, no row counts."""

import random
import time

from tests.lab.faults import Fault, Played, Verdict
from tests.lab.lab import Lab
from tests.lab.switch import SERVICE_ADDRESS
from tests.lab.witnesses import SERVICE_PORT, overlaps

DOUBLE_S = 2.0
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
    seen = {
        "address": [span for _, _, span in overlaps(lab.addresses.held(), lab.began, on_one_node=False)],
        "service": [span for _, _, span in overlaps(lab.beats.held(), lab.began, on_one_node=True)],
    }
    contradictions = lab.client.contradictions(lab.began)
    inside("kill", "-KILL", pid)
    inside("ip", "addr", "del", f"{SERVICE_ADDRESS}/24", "dev", "eth0")
    for witness, spans in seen.items():
        assert max(spans, default=0) >= LEAST_MS, f"the witness of the {witness} is blind: {spans}"
    assert len(contradictions) >= LEAST_ANSWERS, f"the witness of ARP is blind: {len(contradictions)} contradictions"
    return Played(bound_ms=4_000)


FAULTS = (Fault("control-two-holders", Verdict.DETECTED, two_holders),)
"""Two at once; the witnesses are put to the test, the cluster is not."""
