"""`python -m haclusterd.simulator`: swarms of seeds of the whole daemon, and the replay of one; see `command_line`."""

import sys
from functools import partial

from haclusterd.model.records import fields, replace
from haclusterd.model.rules_in_force import ALL_RULES, SafetyRules
from haclusterd.simulator import swarm
from haclusterd.simulator.command_line import main
from haclusterd.simulator.subjects import Subject

if __name__ == "__main__":
    sys.exit(
        main(
            swarm.run,
            module="haclusterd.simulator",
            safety_ms=swarm.SAFETY_PHASE_MS,
            without=lambda rule: partial(swarm.run, rules=replace(ALL_RULES, **{rule: False})),
            rules=tuple(rule.name for rule in fields(SafetyRules)),
            sections=swarm.sections(),
            only={
                "databases": (swarm.has_database, swarm.sections_of_databases()),
                "gpu": (lambda seed: swarm.mode_of(seed) is swarm.Mode.DEVICES, swarm.sections_of_devices()),
                "shapes": (lambda seed: swarm.emphasis(seed).subject is Subject.SHAPES, swarm.sections_of_shapes()),
            },
        )
    )
