"""A text that was written over an older version: both changes stay, or what both have changed is named."""

import pytest

from haclusterd.commands import registry
from haclusterd.commands.context import Context
from haclusterd.commands.outcome import Outcome
from haclusterd.reports.codes import Code
from haclusterd.verbs.answers.configuration import ConfigurationText
from tests.administered_clusters import NOW, Cluster, KeptVersions, formed

BEFORE = """\
node n1
node n2
node n3
primitive a ocf:haclusterd:dummy params key=secret op monitor interval=10s timeout=20s
primitive b ocf:haclusterd:dummy op monitor interval=10s timeout=20s
location l b 5: n1
property cib-bootstrap-options: batch-limit=3 no-quorum-policy=freeze
"""


def situation(theirs: str) -> tuple[Cluster, Context]:
    """Return a cluster, and its context once somebody has made of BEFORE what `theirs` says."""
    cluster = formed()
    cluster.configure(BEFORE)
    base, number = cluster.cib.configuration, cluster.cib.version.epoch
    cluster_context = Context(cluster.cib, NOW, "bob@n2", live=cluster.live)
    outcome = registry.run("configure.load", {"mode": "replace", "text": theirs, "format": "crm"}, cluster_context)
    assert outcome.commands, outcome.reports
    for command in outcome.commands:
        cluster.do(command)
    versions = KeptVersions((), {number: base})
    return cluster, Context(cluster.cib, NOW, "alice@n1", live=cluster.live, versions=versions)


def loaded(cluster: Cluster, context: Context, text: str, mode: str) -> Outcome:
    arguments = {"mode": mode, "text": text, "format": "crm", "over": cluster.cib.version.epoch - 1}
    outcome = registry.run("configure.load", arguments, context)
    for command in outcome.commands:
        cluster.do(command)
    return outcome


def shown(cluster: Cluster) -> str:
    arguments = {"secrets": True, "document": True}
    answer = registry.run("configure.show", arguments, Context(cluster.cib, NOW, "root@n1")).answer
    assert isinstance(answer, ConfigurationText)
    return answer.text.replace("\\\n\t", "")


def edited(*changes: tuple[str, str]) -> str:
    text = BEFORE
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


@pytest.mark.parametrize(
    ("theirs", "mine", "holds"),
    [
        (("op monitor interval=10s timeout=20s\nlocation", "op monitor interval=9s timeout=20s\nlocation"),
         ("5: n1", "7: n1"), ("interval=9s", "7: n1")),
        (("batch-limit=3", "batch-limit=4"), ("=freeze", "=stop"), ("batch-limit=4", "no-quorum-policy=stop")),
        (("location l b 5: n1\n", ""), ("batch-limit=3 ", ""), ("no-quorum-policy=freeze",)),
        (("location l b 5: n1", "location l b 5: n1\nlocation m b 6: n2"), ("5: n1", "8: n1"), ("6: n2", "8: n1")),
        (("5: n1", "9: n1"), ("5: n1", "9: n1"), ("9: n1",)),
    ],
)  # fmt: skip
def test_changes_of_different_things_both_stay(
    theirs: tuple[str, str], mine: tuple[str, str], holds: tuple[str, ...]
) -> None:
    cluster, context = situation(edited(theirs))
    outcome = loaded(cluster, context, edited(mine), "replace")
    assert not outcome.is_refused, outcome.reports
    for each in holds:
        assert each in shown(cluster)
    for old, new in (theirs, mine):
        assert new or old.strip() not in shown(cluster)


@pytest.mark.parametrize(
    ("theirs", "mine", "what"),
    [
        (("5: n1", "6: n1"), ("5: n1", "7: n1"), "l"),
        (("location l b 5: n1\n", ""), ("5: n1", "7: n1"), "l"),
        (("5: n1", "7: n1"), ("location l b 5: n1\n", ""), "l"),
        (("batch-limit=3", "batch-limit=4"), ("batch-limit=3", "batch-limit=5"), "batch-limit"),
        (("batch-limit=3", "batch-limit=4"), ("batch-limit=3 ", ""), "batch-limit"),
    ],
)
def test_what_both_have_changed_is_named_and_nothing_is_done(
    theirs: tuple[str, str], mine: tuple[str, str], what: str
) -> None:
    cluster, context = situation(edited(theirs))
    before = shown(cluster)
    outcome = loaded(cluster, context, edited(mine), "replace")
    assert [each.code for each in outcome.reports] == [Code.CONFLICT, Code.CHANGED_BY_BOTH]
    assert outcome.reports[1].parameters["what"] == what
    assert outcome.reports[1].parameters["author"] == "bob@n2"
    assert shown(cluster) == before


def test_a_secret_that_was_not_shown_is_no_change() -> None:
    cluster, context = situation(edited(("key=secret", "key=other")))
    outcome = loaded(cluster, context, "location l b 7: n1\n", "update")
    assert not outcome.is_refused, outcome.reports
    assert "key=other" in shown(cluster)


def test_over_a_version_that_is_not_kept_nothing_is_loaded() -> None:
    _, context = situation(edited(("5: n1", "6: n1")))
    outcome = registry.run("configure.load", {"mode": "update", "text": BEFORE, "over": 999}, context)
    assert [each.code for each in outcome.reports] == [Code.CONFLICT]


def test_what_is_meant_for_one_version_alone_is_never_put_over_another() -> None:
    cluster, context = situation(edited(("5: n1", "6: n1")))
    for version in (cluster.cib.version.epoch - 1, 999):
        outcome = registry.run("configure.load", {"mode": "update", "text": BEFORE, "version": version}, context)
        assert [each.code for each in outcome.reports] == [Code.CONFLICT]
        assert not outcome.commands
