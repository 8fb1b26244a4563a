"""The tasks of actions, as Pacemaker's graphs name them: of agents, of the cluster, and the marks between them."""

from __future__ import annotations

from haclusterd.model.graph import CLEAR_FAILCOUNT as CLEAR_FAILCOUNT
from haclusterd.model.ocf import ActionName

START = ActionName.START.value
STOP = ActionName.STOP.value
PROMOTE = ActionName.PROMOTE.value
DEMOTE = ActionName.DEMOTE.value
MONITOR = ActionName.MONITOR.value
CANCEL = ActionName.CANCEL.value
NOTIFY = ActionName.NOTIFY.value
MIGRATE_TO = ActionName.MIGRATE_TO.value
MIGRATE_FROM = ActionName.MIGRATE_FROM.value
RELOAD_AGENT = ActionName.RELOAD_AGENT.value
DELETE = "delete"
RUNNING = "running"
STOPPED = "stopped"
PROMOTED = "promoted"
DEMOTED = "demoted"
LRM_DELETE = "lrm_delete"
DO_SHUTDOWN = "do_shutdown"
