"""Units as resources that are not as a cluster expects: what status says of each, and that nothing else is harmed.

All of them are at home on one machine and may run on no other, so that each stands alone. What harms others (a node
that is fenced, a daemon that is started again, a gap in the service) is judged as in every row.
"""

from collections.abc import Callable
from functools import partial

from haclusterd.model.records import dataclass
from tests.lab.site import NotAsExpectedError
from tests.lab.systemd_lab import SystemdLab
from tests.lab.systemd_machine import SystemdMachine
from tests.lab.systemd_rows import DRAIN_MS, Asked, Row

PLACE = "/usr/local/lib/systemd/system"
ADMINISTRATORS = "/etc/systemd/system"
NAME = "lab-bad"
UNIT = f"{NAME}.service"
RUNS = "ExecStart=/bin/sleep 1d\n"
SHOWN_S = 20.0


@dataclass(frozen=True, slots=True)
class BadUnit:
    """A unit, what an administrator has done to it, and what status must say of its resource."""

    name: str
    head: str = ""
    """More lines of its section [Unit]."""
    service: str = RUNS
    tail: str = ""
    """More sections."""
    before: str = ""
    """What is typed before it becomes a resource."""
    failure: str = ""
    """Words of the failure; empty: none is expected."""
    warning: str = ""
    """Words of the warning."""
    runs: bool = True


UNITS = (
    BadUnit("masked", before=f"systemctl mask {NAME}", failure=f"unit {UNIT} is masked", runs=False),
    BadUnit("without [Install]"),
    BadUnit("ends at once", service="ExecStart=/bin/sh -c 'exit 3'\nType=oneshot\nRemainAfterExit=yes\nRestart=no\n",
            failure="result exit-code, exit status 3", runs=False),
    BadUnit("not readable", service="ExecStart=\n", runs=False,
            failure=f"unit {UNIT} has a setting that systemd refuses"),
    BadUnit("enabled", tail="\n[Install]\nWantedBy=multi-user.target\n", before=f"systemctl enable {NAME}",
            warning=f"{UNIT} is enabled"),
    BadUnit("needs the daemon", head="BindsTo=haclusterd.service\nAfter=haclusterd.service\n",
            warning=f"{UNIT} has BindsTo=haclusterd.service"),
    BadUnit("restarts by itself", before=f"mkdir {ADMINISTRATORS}/{UNIT}.d; "
            f"printf '[Service]\\nRestart=always\\n' > {ADMINISTRATORS}/{UNIT}.d/zz.conf",
            warning=f"{UNIT} has Restart=always"),
)  # fmt: skip


def bad_units(lab: SystemdLab) -> Asked:
    """One after the other: what status says; and those that run are stopped and started by others than the cluster."""
    home = lab.machine("n1")
    for each in UNITS:
        _with(lab, home, each, partial(_shown, lab, home, each))
    _with(lab, home, BadUnit("restarted and stopped by hand"), lambda: _behind_its_back(lab, home))
    _with(lab, home, BadUnit("D-Bus away"), lambda: _bus_away(lab, home))
    bound = BadUnit("bound to a daemon that is stopped", head="BindsTo=haclusterd.service\nAfter=haclusterd.service\n")
    _with(lab, home, bound, lambda: _daemon_stopped(lab, home))
    return Asked(outage_ms=DRAIN_MS)


def _with(lab: SystemdLab, home: SystemdMachine, bad: BadUnit, play: Callable[[], None]) -> None:
    """Play while the unit is a resource, and leave nothing of it."""
    home.run("mkdir", "-p", PLACE)
    text = f"[Unit]\nDescription={bad.name}\n{bad.head}\n[Service]\n{bad.service}{bad.tail}"
    home.run("tee", f"{PLACE}/{UNIT}", stdin=text)
    home.shell(f"{bad.before or 'true'}; systemctl daemon-reload")
    lab.script(
        f"primitive bad systemd:{NAME} op start timeout=20s op stop timeout=20s op monitor interval=2s timeout=20s",
        *(f"location bad-not-{name} bad -inf: {name}" for name in lab.others(home.name)),
    )
    try:
        play()
        print(f"  {bad.name}: as expected", flush=True)
    except NotAsExpectedError as error:
        raise NotAsExpectedError(f"{bad.name}: {error}; {home.run('crm', 'status', is_checked=False)}") from error
    finally:
        lab.until("all machines to be there", lambda: lab.online() == set(lab.machines), 60)
        home.run("crm", "resource", "stop", "bad", is_checked=False)
        lab.until("it to stop", lambda: home.shows(NAME, "ActiveState") in ("inactive", "failed"), 30)
        home.run("crm", "resource", "cleanup", "bad", is_checked=False)
        home.run("crm", "configure", "delete", "bad", "--cascade", is_checked=False)
        home.shell(f"systemctl unmask {NAME}; systemctl disable {NAME}; rm -rf {PLACE}/{UNIT} {ADMINISTRATORS}/{UNIT}*",
                   is_checked=False)  # fmt: skip
        home.shell(f"systemctl daemon-reload; systemctl reset-failed {NAME}", is_checked=False)


def _failures(lab: SystemdLab) -> list[str]:
    return [f"{each['operation']} on {each['node']}: {each['exit_reason']}" for each in lab.status()["failures"]
            if each["resource"] == "bad"]  # fmt: skip


def _warnings(lab: SystemdLab, home: SystemdMachine) -> list[str]:
    return [str(each) for each in lab.status(home.name)["warnings"]]


def _is_running(home: SystemdMachine) -> bool:
    return home.shows(NAME, "ActiveState") == "active"


def _shown(lab: SystemdLab, home: SystemdMachine, bad: BadUnit) -> None:
    if bad.runs:
        lab.until("it to run", lambda: _is_running(home), SHOWN_S)
    if bad.failure:
        lab.until(f"a failure with {bad.failure!r}", lambda: any(
            bad.failure in each and f"on {home.name}" in each for each in _failures(lab)), SHOWN_S)  # fmt: skip
    elif _failures(lab):
        raise NotAsExpectedError(f"failures: {_failures(lab)}")
    if bad.warning:
        lab.until(f"a warning with {bad.warning!r}", lambda: any(
            bad.warning in each for each in _warnings(lab, home)), SHOWN_S)  # fmt: skip
    elif _warnings(lab, home):
        raise NotAsExpectedError(f"warnings: {_warnings(lab, home)}")


def _behind_its_back(lab: SystemdLab, home: SystemdMachine) -> None:
    """Restart it by hand, which is no failure; stop it by hand, which is one."""
    lab.until("it to run", lambda: _is_running(home), SHOWN_S)
    home.shell(f"systemctl restart {NAME}")
    lab.hold("it runs on", lambda: _is_running(home), 3)
    home.shell(f"systemctl stop {NAME}")
    lab.until("the failure", lambda: any(f"{UNIT} is inactive (dead)" in each for each in _failures(lab)), SHOWN_S)
    lab.until("it to run again", lambda: _is_running(home), SHOWN_S)


def _bus_away(lab: SystemdLab, home: SystemdMachine) -> None:
    """Stop D-Bus for less than a monitor's timeout: it is said, and the unit runs on as it was."""
    lab.until("it to run", lambda: _is_running(home), SHOWN_S)
    pid = home.shows(NAME, "MainPID")
    home.shell("systemctl stop dbus.socket dbus.service")
    try:
        lab.until("words about it", lambda: any(
            "systemd cannot be reached over D-Bus since" in each for each in _warnings(lab, home)), 15)  # fmt: skip
    finally:
        home.shell("systemctl start dbus.socket dbus.service")
    lab.until("no words about it", lambda: not _warnings(lab, home), 15)
    lab.hold("no failure", lambda: not _failures(lab), 5)
    if home.shows(NAME, "MainPID") != pid:
        raise NotAsExpectedError("the unit was started again")


def _daemon_stopped(lab: SystemdLab, home: SystemdMachine) -> None:
    """Stop the daemon with a unit that is bound to it: the stop ends, and the unit with it."""
    lab.until("it to run", lambda: _is_running(home), SHOWN_S)
    home.shell("systemctl stop haclusterd")
    for unit in ("haclusterd", NAME):
        if home.shows(unit, "ActiveState") not in ("inactive", "failed"):
            raise NotAsExpectedError(f"after systemctl stop haclusterd {unit} is {home.shows(unit, 'ActiveState')}")
    home.shell("systemctl start haclusterd")
    lab.until("it to run again", lambda: _is_running(home), 60)


ROWS = (Row("systemd-unit-bad", bad_units),)
