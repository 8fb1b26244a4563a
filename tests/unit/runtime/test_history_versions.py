"""Every configuration version is in the history of a daemon, and can be compared with and gone back to."""

import json

from haclusterd.model.requests import Options
from haclusterd.reports.exit_codes import ExitStatus
from haclusterd.runtime.history_rows import read_version
from tests.unit.runtime.desk import Desk, configure, status_of
from tests.unit.runtime.one_daemon import ListHistory


def history(desk: Desk) -> ListHistory:
    kept = desk.daemon.runtime.ports.history
    assert isinstance(kept, ListHistory)
    return kept


def test_each_version_is_kept_with_its_content_author_and_reason() -> None:
    desk = Desk()
    first = configure(desk, "property batch-limit=3", "slow disks")
    second = configure(desk, "primitive a ocf:haclusterd:dummy op monitor interval=10s")
    kept = history(desk).kept
    assert [(each.number, each.author, each.reason) for each, _ in kept.values()] == [
        (1, "root@n2", "slow disks"), (2, "root@n2", ""),
    ]  # fmt: skip
    assert [read_version(content) for _, content in kept.values()] == [first, second]


def test_two_daemons_keep_the_same_bytes() -> None:
    desks = [Desk(), Desk()]
    for desk in desks:
        configure(desk, "property batch-limit=3")
        configure(desk, "primitive a ocf:haclusterd:dummy op monitor interval=10s")
    first, second = ([content for _, content in history(desk).kept.values()] for desk in desks)
    assert first == second


def test_versions_are_compared_over_the_history() -> None:
    desk = Desk()
    configure(desk, "property batch-limit=3")
    configure(desk, "property batch-limit=4")
    configure(desk, "property batch-limit=5")
    response = desk.response(desk.ask("history.diff", {"old": 1, "new": 2}))
    assert response is not None
    assert "-\tbatch-limit=3\n+\tbatch-limit=4" in str(json.loads(json.dumps(response.data))["text"])


def test_going_back_is_a_change_with_a_reason_and_makes_a_new_version() -> None:
    desk = Desk()
    first = configure(desk, "property batch-limit=3")
    configure(desk, "property batch-limit=4\nprimitive a ocf:haclusterd:dummy op monitor interval=10s")
    name = desk.ask("configure.rollback", {"version": 1}, Options(wait_ms=0, reason="too fast"))
    desk.daemon.settle()
    assert status_of(desk, name) == ExitStatus.UNSAFE, "it removes a resource"
    name = desk.ask("configure.rollback", {"version": 1}, Options(wait_ms=0, reason="too fast", force=True))
    desk.daemon.settle()
    assert status_of(desk, name) == ExitStatus.OK
    assert desk.daemon.cib.configuration == first
    version = desk.daemon.cib.version
    assert (version.epoch, version.reason) == (3, "rollback to version 1: too fast")
    assert sorted(history(desk).kept) == [1, 2, 3]


def test_a_dry_run_of_going_back_changes_nothing() -> None:
    desk = Desk()
    configure(desk, "property batch-limit=3")
    configure(desk, "property batch-limit=4")
    name = desk.ask("configure.rollback", {"version": 1}, Options(dry_run=True))
    desk.daemon.settle()
    assert status_of(desk, name) == ExitStatus.OK
    assert desk.daemon.cib.version.epoch == 2


def test_what_the_history_does_not_have_cannot_be_gone_back_to() -> None:
    desk = Desk()
    configure(desk, "property batch-limit=3")
    configure(desk, "property batch-limit=4")
    del history(desk).kept[1]
    name = desk.ask("configure.rollback", {"version": 1})
    assert desk.codes(name) == ["VERSION_NOT_KEPT"]
    listed = desk.response(desk.ask("history.config"))
    assert listed is not None
    assert isinstance(listed.data, dict)
    assert listed.data["gaps"] == [{"first": 1, "last": 1}]
