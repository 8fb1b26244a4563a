"""Every answer there is, by its schema. What needs one of them takes it from its file: this loads all."""

from collections.abc import Mapping

from haclusterd.verbs.answers import (
    access,
    agents,
    alerts,
    availability,
    cluster,
    configuration,
    crm,
    devices,
    fencing,
    history,
    node,
    resource,
    secrets,
    simulation,
    status,
)
from haclusterd.verbs.answers.answer import Answer

_FILES = (
    access, agents, alerts, availability, cluster, configuration, crm, devices, fencing, history, node, resource,
    secrets, simulation, status,
)  # fmt: skip

ANSWERS: Mapping[str, type[Answer]] = {
    found.SCHEMA: found
    for file in _FILES
    for found in vars(file).values()
    if isinstance(found, type) and issubclass(found, Answer) and found is not Answer
}
