"""What resources say of the devices that they need: utilization gpus=N and the meta-attributes gpu-*.

What cannot be given is refused; what says nothing is warned of (docs/design/0015-devices.md).
"""

from haclusterd.commands.verify.judgement import Judgement, pairs
from haclusterd.model.configuration import Clone, Primitive
from haclusterd.model.devices import DEVICE_META, GPUS
from haclusterd.model.ids import UNITS
from haclusterd.model.rows import read_boolean_or
from haclusterd.reports.codes import Code

_GANG = "gpu-gang"
_OF_DEVICES = tuple(name for name in DEVICE_META if name != _GANG)


def check_devices(judgement: Judgement) -> None:
    """Judge what every resource asks of devices."""
    for primitive in judgement.configuration.primitives():
        _check_primitive(judgement, primitive)
    for resource in judgement.configuration.resources.values():
        own = dict(pairs(resource.meta))
        if own.get(_GANG, "none").lower() == "all" and not isinstance(resource, Clone):
            path = ("resource", resource.id, "meta", _GANG)
            why = "only the instances of a clone are a gang: write it into the clone"
            judgement.note(Code.WITHOUT_EFFECT, path, what=f"{resource.id}: {_GANG}", why=why)


def _check_primitive(judgement: Judgement, primitive: Primitive) -> None:
    known = judgement.configuration.templates
    template = known.get(primitive.template) if primitive.template is not None else None
    meta = dict(pairs((*(template.meta if template is not None else ()), *primitive.meta)))
    utilization = dict(pairs((*(template.utilization if template is not None else ()), *primitive.utilization)))
    path = ("resource", primitive.id)
    if GPUS not in utilization:
        for name in _OF_DEVICES:
            if name in dict(pairs(primitive.meta)):
                why = f"{primitive.id} asks for no devices: write utilization {GPUS}=1"
                judgement.note(Code.WITHOUT_EFFECT, (*path, "meta", name), what=f"{primitive.id}: {name}", why=why)
        return
    if primitive.agent.standard in UNITS:
        judgement.note(
            Code.NOT_YET,
            judgement.written((*path, "utilization", GPUS), path),
            construct=f"{primitive.id}: {GPUS} of {primitive.agent}, whose environment does not come from the cluster,",
            remedy="run the program by ocf:haclusterd:exec, which gets its devices in CUDA_VISIBLE_DEVICES",
        )
    if meta.get("gpu-sharing", "").lower() == "memory" and not meta.get("gpu-memory", "").strip("0 "):
        judgement.note(
            Code.BAD_VALUE,
            judgement.written((*path, "meta", "gpu-sharing"), path),
            name=f"{primitive.id}: gpu-sharing",
            problem="with memory the resource must say how much it takes of each device",
            remedy="add gpu-memory=20G",
        )
    if "gpu-profile" in meta and meta.get("gpu-kind", "").lower() != "mig":
        why = "only MIG instances have a profile: add gpu-kind=mig"
        judgement.note(
            Code.WITHOUT_EFFECT,
            judgement.written((*path, "meta", "gpu-profile"), path),
            what=f"{primitive.id}: gpu-profile",
            why=why,
        )
    if read_boolean_or(meta.get("allow-migrate", ""), default=False):
        why = f"what holds devices is not migrated live: where it moves it stops and starts ({GPUS})"
        judgement.note(
            Code.WITHOUT_EFFECT,
            judgement.written((*path, "meta", "allow-migrate"), path),
            what=f"{primitive.id}: allow-migrate",
            why=why,
        )
