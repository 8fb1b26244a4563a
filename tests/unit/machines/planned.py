"""Plans and their actions, as the scheduler would make them."""

from collections.abc import Sequence

from haclusterd.model.graph import ActionKind, GraphAction
from haclusterd.model.ids import NodeName, ResourceId
from haclusterd.model.ocf import ActionName, ExitCode
from tests.unit.situations import DB, DUMMY, N2


def act(
    number: int,
    action: ActionName,
    resource: ResourceId = DB,
    node: NodeName = N2,
    after: Sequence[int] = (),
    *,
    is_probe: bool = False,
) -> GraphAction:
    return GraphAction(
        id=number,
        kind=ActionKind.RESOURCE,
        name=action,
        resource=resource,
        node=node,
        inputs=tuple(after),
        agent=DUMMY,
        target_exit_code=ExitCode.NOT_RUNNING if is_probe else ExitCode.OK,
        is_probe=is_probe,
    )
