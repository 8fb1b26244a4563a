"""`crm cluster wait_for_startup`: waits until the daemon of this machine answers and the cluster has a leader."""

import time

from haclusterd.cli.render.fields import fields, text
from haclusterd.cli.session import Session
from haclusterd.model.requests import Response, ShownReport
from haclusterd.reports.exit_codes import ExitStatus

USUAL_S = 60
PAUSE_S = 0.2
_NOT_YET = (ExitStatus.OK, ExitStatus.UNAVAILABLE, ExitStatus.TRY_AGAIN, ExitStatus.DISCONNECTED, ExitStatus.NO_QUORUM)


def wait_for_startup(session: Session, seconds: int) -> Response:
    """Ask again and again; give up after so many seconds."""
    deadline = time.monotonic() + seconds
    while True:
        answer = session.ask("cluster.members", {})
        leader = text(fields(answer.data), "leader")
        if answer.exit == ExitStatus.OK and leader:
            return Response("", 0, (ShownReport("info", "REQUESTED", f"the cluster is up; {leader} leads"),))
        if answer.exit not in _NOT_YET:
            return answer
        if time.monotonic() >= deadline:
            missing = "the daemon to answer" if answer.exit else "the cluster to have a leader"
            remedy = "systemctl status haclusterd" if answer.exit else "crm cluster members"
            late = ShownReport("error", "TIMEOUT", f"not reached in {seconds} s: {missing}", remedy)
            return Response("", int(ExitStatus.TIMEOUT), (late,))
        time.sleep(PAUSE_S)
