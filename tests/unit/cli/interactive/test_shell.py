"""The prompt: who answers, whether changes wait, whether there is a quorum."""

import io

import pytest

from haclusterd.cli.completing.known_names import KnownNames
from haclusterd.cli.interactive.shell import Shell
from haclusterd.cli.interpreter import Interpreter
from haclusterd.cli.offline import OfflineClient
from haclusterd.cli.render.terminal import Screen
from haclusterd.cli.session import Session, Streams
from tests.administered_clusters import SITUATIONS, ClusterClient


def shell(situation: str) -> Shell:
    streams = Streams(io.StringIO(), io.StringIO(), io.StringIO())
    session = Session(ClusterClient(SITUATIONS[situation]()), streams, Screen(), Screen())
    return Shell(session, Interpreter(session, is_script=False), KnownNames(session))


@pytest.mark.parametrize(("situation", "mark"), [("healthy", ""), ("no-quorum", "!")])
def test_the_prompt(situation: str, mark: str) -> None:
    made = shell(situation)
    made.look()
    assert made.prompt() == f"crm(live{mark}/n1)# "
    made.execute("configure\nproperty node-timeout=3s\n")
    assert made.prompt() == f"crm(live*{mark}/n1)configure# "
    made.execute("discard")
    assert made.prompt() == f"crm(live{mark}/n1)configure# "


def test_a_file_has_no_node_and_an_absent_one_is_reported_once() -> None:
    made = shell("healthy")
    made.look()
    made.session.client = OfflineClient("/nowhere/state.cib", "nobody")
    made.look()
    made.node = ""
    assert made.prompt() == "crm(state.cib)# "
    made.look(is_first=True)
    assert made.session.streams.stderr.getvalue().count("/nowhere/state.cib") == 1
