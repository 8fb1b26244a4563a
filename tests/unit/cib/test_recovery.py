"""What a cluster begins with that continues another one."""

from haclusterd.cib.recovery import asking_what_runs
from haclusterd.model.configuration import AttributeSet, Configuration


def configured(*pairs: tuple[str, str]) -> Configuration:
    return Configuration(properties=(AttributeSet("options", pairs),))


def test_every_node_is_asked_what_runs_there_whatever_the_other_cluster_was_to_do() -> None:
    before = configured(("enable-startup-probes", "false"), ("node-timeout", "3s"))
    assert asking_what_runs(before) == configured(("node-timeout", "3s"))


def test_a_configuration_that_says_nothing_of_it_stays_the_same_object() -> None:
    configuration = configured(("node-timeout", "3s"))
    assert asking_what_runs(configuration) is configuration
