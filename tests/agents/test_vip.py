"""Addresses on a real network of two namespaces: taken, announced, refused where somebody else has them, given back."""

from collections.abc import Callable

import pytest

from tests.agents.conftest import AgentUnderTest
from tests.agents.network import FAR_CABLE, NEAR_CABLE, Segment

OK, ERROR, NOT_INSTALLED, NOT_CONFIGURED, NOT_RUNNING, DEGRADED = 0, 1, 5, 6, 7, 190
IPV4, IPV6 = "10.77.0.50", "fd77::50"
both = pytest.mark.parametrize(("ip", "prefix"), [(IPV4, 24), (IPV6, 64)])

MakeVip = Callable[..., AgentUnderTest]


@both
def test_an_address_comes_with_the_networks_prefix_and_goes(make_vip: MakeVip, segment: Segment, ip, prefix) -> None:
    agent = make_vip(ip)
    before = segment.addresses()
    assert agent.code("start") == OK
    assert segment.addresses() - before == {f"{ip}/{prefix}"}
    ping = "ping -c1 -W5 -n" if ip == IPV4 else "ping -6 -c1 -W5 -n"
    segment.do(segment.far, f"{ping} {ip}")
    assert agent.code("stop") == OK
    assert segment.addresses() == before


@both
def test_what_somebody_else_answers_for_is_never_taken(make_vip: MakeVip, segment: Segment, ip, prefix) -> None:
    segment.do(segment.far, f"ip addr add {ip}/{prefix} dev {FAR_CABLE} {'nodad' if ip == IPV6 else ''}")
    mac = segment.mac(segment.far, FAR_CABLE)
    before = segment.addresses()
    done = make_vip(ip).run("start")
    assert done.returncode == ERROR
    assert f"ocf-exit-reason:address-in-use: somebody else answers for {ip} on {NEAR_CABLE} (mac={mac})" in done.stderr
    assert segment.addresses() == before


@both
def test_the_neighbours_learn_where_it_is(make_vip: MakeVip, segment: Segment, ip, prefix) -> None:
    family = "4" if ip == IPV4 else "6"
    segment.do(segment.far, f"echo 0 >/proc/sys/net/ipv{family}/neigh/{FAR_CABLE}/locktime || true")
    segment.do(segment.far, f"ip neigh replace {ip} lladdr 02:00:00:00:00:99 dev {FAR_CABLE} nud stale")
    mac = segment.mac(segment.near, NEAR_CABLE)
    assert make_vip(ip).code("start") == OK
    assert mac in segment.do(segment.far, f"ip neigh show {ip}")


@both
def test_a_level_10_monitor_sees_a_second_holder(make_vip: MakeVip, segment: Segment, ip, prefix) -> None:
    agent = make_vip(ip)
    assert agent.code("start") == OK
    assert agent.code("monitor", level=10) == OK
    segment.do(segment.far, f"ip addr add {ip}/{prefix} dev {FAR_CABLE} {'nodad' if ip == IPV6 else ''}")
    assert agent.code("monitor") == OK
    done = agent.run("monitor", level=10)
    assert (done.returncode, "address-in-use" in done.stderr) == (ERROR, True)


def test_an_interface_without_a_link_is_a_failure_of_this_node(make_vip: MakeVip, segment: Segment) -> None:
    agent = make_vip()
    assert agent.code("start") == OK
    segment.do(segment.far, f"ip link set {FAR_CABLE} down")
    done = agent.run("monitor")
    assert (done.returncode, f"link-down: {NEAR_CABLE} is without carrier" in done.stderr) == (ERROR, True)
    assert agent.code("stop") == OK
    before = segment.addresses()
    assert agent.code("start") == ERROR
    assert segment.addresses() == before


def test_a_stop_succeeds_when_the_interface_has_gone(make_vip: MakeVip, segment: Segment) -> None:
    agent = make_vip(nic=NEAR_CABLE)
    assert agent.code("start") == OK
    segment.do(segment.near, f"ip link del {NEAR_CABLE}")
    assert agent.code("monitor") == NOT_RUNNING
    assert agent.code("stop") == OK
    done = agent.run("start")
    assert (done.returncode, f"no-interface: this node has no interface '{NEAR_CABLE}'" in done.stderr) == (5, True)


def test_a_start_that_cannot_announce_takes_the_address_away_again(make_vip: MakeVip, segment: Segment) -> None:
    agent = make_vip(dad_count="0")
    agent.within += ["setpriv", "--inh-caps", "-net_raw", "--bounding-set", "-net_raw"]
    before = segment.addresses()
    done = agent.run("start")
    assert (done.returncode, "not-added: near0: Operation not permitted" in done.stderr) == (ERROR, True)
    assert segment.addresses() == before


def test_an_address_on_another_interface_is_misplaced_and_goes_with_a_stop(make_vip: MakeVip, segment: Segment) -> None:
    agent = make_vip(nic=NEAR_CABLE)
    segment.do(segment.near, "ip link add other0 type veth peer name other1; ip addr add 10.77.0.50/32 dev other0")
    assert agent.code("monitor") == ERROR
    done = agent.run("start")
    assert (done.returncode, "misplaced: other0 has 10.77.0.50, not near0" in done.stderr) == (ERROR, True)
    assert agent.code("stop") == OK
    assert "10.77.0.50/32" not in segment.addresses()


def test_further_addresses_of_the_network_are_kept(make_vip: MakeVip, segment: Segment) -> None:
    first, second = (make_vip(f"10.88.0.{number}", nic=NEAR_CABLE, prefix="24") for number in (1, 2))
    assert first.code("start") == OK
    assert second.code("start") == OK
    assert first.code("stop") == OK
    assert "10.88.0.2/24" in segment.addresses()
    assert second.code("monitor") == OK


def test_a_bond_that_has_lost_a_port_is_degraded(make_vip: MakeVip, segment: Segment) -> None:
    agent = make_vip("10.99.0.50")
    segment.do(segment.near, "ip link add bond9 type bond mode active-backup miimon 10 || true")
    if "bond9" not in segment.do(segment.near, "ip -o link"):
        pytest.skip("not installed: the kernel's bonding driver")
    for number in (1, 2):
        segment.do(segment.near, f"ip link add port{number} type veth peer name peer{number}")
        segment.do(segment.near, f"ip link set peer{number} up; ip link set port{number} master bond9")
    segment.do(segment.near, "ip addr add 10.99.0.1/24 dev bond9; ip link set bond9 up")
    assert agent.code("start") == OK
    assert agent.code("monitor") == OK
    segment.do(segment.near, "ip link set peer2 down")
    done = agent.run("monitor")
    assert (done.returncode, "bond-degraded: no link (bond=bond9 ports=port2)" in done.stderr) == (DEGRADED, True)


@pytest.mark.parametrize(
    "wrong",
    [
        {"ip": "10.77.0.50/24"}, {"ip": "10.77.0.500"}, {"prefix": "33"}, {"prefix": "x"}, {"dad_count": "-1"},
        {"dad_wait": "1h"}, {"preferred_lifetime": "7"}, {"ip": None},
    ],
)  # fmt: skip
def test_impossible_values_are_wrong_everywhere(make_vip: MakeVip, wrong: dict[str, str | None]) -> None:
    done = make_vip().run("start", **wrong)
    assert done.returncode == NOT_CONFIGURED
    assert next(iter(wrong)) in done.stderr


def test_a_network_that_no_interface_has_is_this_nodes_problem(make_vip: MakeVip) -> None:
    done = make_vip("172.31.9.9").run("start")
    assert (done.returncode, "no-network: no interface has an address" in done.stderr) == (NOT_INSTALLED, True)
