"""Configurations of databases that how-to pages show come in as they are, with nothing to be warned of."""

import pytest

from haclusterd.commands import registry
from haclusterd.commands.context import Context
from haclusterd.reports.codes import Severity
from tests.administered_clusters import NOW, formed
from tests.databases.page import texts

PAGES = {
    "run-postgresql.md": ("crm", "crm-haclusterd", "crm-paf"),
    "run-redis.md": ("crm",),
    "run-mariadb.md": ("crm",),
    "run-galera.md": ("crm",),
}


@pytest.mark.parametrize(("page", "block"), [(page, block) for page, blocks in PAGES.items() for block in blocks])
def test_a_documented_database_comes_in_as_it_is(page: str, block: str) -> None:
    cluster = formed()
    context = Context(cluster.cib, NOW, "root@n1", live=cluster.live)
    script = {"text": texts(page)[block], "source": page}
    outcome = registry.run("configure.script", script, context)
    assert [f"{each.code}: {each.message}" for each in outcome.reports if each.severity is not Severity.INFO] == []
