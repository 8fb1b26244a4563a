"""The page on who may do what: its commands run in their order, and mean what it says."""

import io
import re
import shlex
from pathlib import Path

from haclusterd.cli.main import World, run
from haclusterd.cli.session import Streams
from haclusterd.formats.policy.yaml import load_policy
from haclusterd.model.requests import Response
from tests.administered_clusters import ClusterClient, running

PAGE = (Path(__file__).parents[2] / "docs" / "howto" / "who-may-do-what.md").read_text()


def test_the_commands_of_the_page_run() -> None:
    cluster = running()
    client, answers = ClusterClient(cluster), dict[str, tuple[int, str]]()
    for line in re.findall(r"^    (crm .*)$", PAGE, re.MULTILINE):
        out = io.StringIO()
        world = World(
            streams=Streams(io.StringIO(), out, out), environment={}, connect=lambda _: client,
            open_file=lambda _: client, setup=lambda _: Response("", 0), version=lambda: "0",
        )  # fmt: skip
        answers[line] = run(["-F", *shlex.split(line)[1:]], world), out.getvalue()
    refused = {line: said for line, (status, said) in answers.items() if status}
    assert refused == {}
    assert "role app-operator" in answers["crm acl can resource.stop web --user alice"][1]
    assert cluster.cib.api_tokens["deploy"].role == "app-operator"


def test_the_yaml_of_the_page_is_what_its_commands_make() -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    made = load_policy(text, "page")
    assert not made.reports
    assert set(made.configuration.acl_roles) == {"app-operator"}
    assert made.configuration.acl_targets["alice"].roles == ("app-operator",)
