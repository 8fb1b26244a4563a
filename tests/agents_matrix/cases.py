"""Which agents are run, with which parameters, and what has to be there before.

Whatever a case needs of the machine it makes below its own directory, or in the namespaces that the matrix runs in:
network, mounts, `/etc`, `/run` and `/var` are its own (see `__main__`).
"""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from haclusterd.model.records import dataclass, field

HEARTBEAT, PACEMAKER, OWN = "heartbeat", "pacemaker", "haclusterd"
INTERFACE, NEIGHBOUR = "lab0", "lab1"
OWN_ADDRESS, PREFIX = "10.77.0.1", 24
SECOND_ADDRESS = "10.77.0.3"
"""Of the same network: what IPsrcaddr takes back is the first one."""
PORTS = iter(range(23500, 24500))
HERE = Path(__file__).parent
ANSWERING: list[socket.socket] = []
"""Ports that take connections as long as this process lives."""

PROMOTABLE = {
    "clone": "0", "clone_max": "2", "clone_node_max": "1", "globally_unique": "false", "notify": "true",
    "promotable": "true", "promoted_max": "1", "promoted_node_max": "1", "master_max": "1", "master_node_max": "1",
}  # fmt: skip
CLONE = {"clone": "0", "clone_max": "1", "clone_node_max": "1", "globally_unique": "false", "notify": "true"}


class CannotRunError(Exception):
    """The machine lacks what the case needs; the message says what."""


@dataclass(frozen=True, slots=True)
class Case:
    """One agent; `prepare` makes what it needs in a directory of its own, and returns its parameters."""

    agent: str
    prepare: Callable[[Path], Mapping[str, str]] = field(default=lambda _: {}, repr=False)
    programs: tuple[str, ...] = ()
    why_not: str = ""
    """Why it cannot be run on a machine like this one, whatever is installed."""
    meta: Mapping[str, str] = field(default_factory=dict)
    variant: str = ""
    level: str | None = None
    """OCF_CHECK_LEVEL of one more monitor."""

    @property
    def name(self) -> str:
        """Agent and variant."""
        return f"{self.agent}{f' ({self.variant})' if self.variant else ''}"


def given(**parameters: str) -> Callable[[Path], Mapping[str, str]]:
    """Return a preparation that makes nothing; `{here}` is the case's directory."""
    return lambda here: {name: value.format(here=here) for name, value in parameters.items()}


def do(*words: object, **options: str) -> str:
    """Run a command that prepares something. Raises CannotRunError."""
    try:
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=300, check=False,
                              input=options.get("stdin", ""))  # fmt: skip
    except OSError as error:
        raise CannotRunError(f"{words[0]}: {error.strerror}") from None
    if done.returncode:
        printed = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise CannotRunError(f"{words[0]}: {printed[-1] if printed else done.returncode}")
    return done.stdout


def write(path: Path, text: str, mode: int = 0o644) -> str:
    """Write a file, with the directories above it; return its path as text."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def owned(path: Path, user: str) -> Path:
    """Make a directory of a service's user."""
    path.mkdir(parents=True, exist_ok=True)
    try:
        shutil.chown(path, user, user)
    except LookupError:
        raise CannotRunError(f"there is no user {user}") from None
    return path


def port() -> int:
    """Return a port that no other case has."""
    return next(PORTS)


def loop(here: Path, mebibytes: int = 64) -> str:
    """Return a loop device over a new file; it goes when nothing uses it any more, and this process has ended."""
    file = here / "disk"
    with open(file, "wb") as disk:
        disk.truncate(mebibytes * 1024 * 1024)
    device = do("losetup", "--find", "--show", file).strip()
    os.open(device, os.O_RDONLY | os.O_CLOEXEC)
    do("losetup", "--detach", device)
    return device


# -- preparations ---------------------------------------------------------------------------------------------------


def nginx(here: Path) -> Mapping[str, str]:
    at = port()
    page = f"server {{ listen 127.0.0.1:{at}; location / {{ return 200 'ok'; }} }}"
    text = f"pid {here}/nginx.pid; error_log {here}/error.log; events {{}} http {{ access_log off; {page} }}"
    return {"configfile": write(here / "nginx.conf", text), "status10url": f"http://127.0.0.1:{at}/",
            "status10regex": "ok"}  # fmt: skip


def apache(here: Path) -> Mapping[str, str]:
    at, modules = port(), "/usr/lib/apache2/modules"
    loaded = "".join(f"LoadModule {name}_module {modules}/mod_{name}.so\n"
                     for name in ("mpm_event", "authz_core", "status"))  # fmt: skip
    text = (f"{loaded}ServerRoot {here}\nServerName localhost\nListen 127.0.0.1:{at}\nPidFile {here}/apache.pid\n"
            f"ErrorLog {here}/error.log\n"
            "<Location /server-status>\nSetHandler server-status\n</Location>\n")  # fmt: skip
    return {"configfile": write(here / "apache.conf", text), "httpd": "/usr/sbin/apache2",
            "statusurl": f"http://127.0.0.1:{at}/server-status", "testurl": "/server-status",
            "testregex": "Apache", "testregex10": "Apache"}  # fmt: skip


def named(here: Path) -> Mapping[str, str]:
    owned(Path("/run/named"), "bind")
    owned(here, "bind")
    zone = f'zone "lab" {{ type primary; file "{here}/lab.zone"; }};'
    write(here / "lab.zone", "$TTL 60\n@ SOA ns root 1 60 60 60 60\n@ NS ns\nns A 127.0.0.1\n")
    options = f'listen-on {{ 127.0.0.1; }}; listen-on-v6 {{ none; }}; recursion no; directory "{here}";'
    text = f'options {{ {options} pid-file "/run/named/named.pid"; }}; {zone}\n'
    return {"named_config": write(here / "named.conf", text), "named_user": "bind", "named_rootdir": "",
            "monitor_request": "ns.lab", "monitor_response": "127.0.0.1"}  # fmt: skip


def redis(here: Path) -> Mapping[str, str]:
    for place in (here / "data", Path("/run/redis")):
        owned(place, "redis")
    at = str(port())
    text = f"port {at}\nbind 127.0.0.1\ndir {here}/data\nlogfile {here}/data/redis.log\ndaemonize yes\n"
    return {"config": write(here / "redis.conf", text), "port": at, "rundir": "/run/redis", "user": "redis",
            "pidfile_name": "redis.pid", "socket_name": "redis.sock"}  # fmt: skip


def mariadb(here: Path) -> Mapping[str, str]:
    data, run = owned(here / "data", "mysql"), owned(here / "run", "mysql")
    settings = write(here / "my.cnf", f"[mysqld]\nport={port()}\nbind-address=127.0.0.1\ninnodb_buffer_pool_size=8M\n"
                     f"server-id=1\nlog-bin={data}/binlog\n")  # fmt: skip
    do("mariadb-install-db", "--no-defaults", f"--datadir={data}", "--user=mysql",
       "--auth-root-authentication-method=socket")  # fmt: skip
    return {"binary": "/usr/sbin/mariadbd", "config": settings, "datadir": str(data), "pid": f"{run}/pid",
            "socket": f"{run}/socket", "log": f"{data}/error.log", "user": "mysql", "test_user": "root"}  # fmt: skip


def mariadb_replicated(here: Path) -> Mapping[str, str]:
    found = mariadb(here)
    who = "'copy'@'localhost'"
    text = f"CREATE USER IF NOT EXISTS {who} IDENTIFIED BY 'copied';\nGRANT ALL ON *.* TO {who};\n"
    with open(found["config"], "a") as settings:
        settings.write(f"init-file={write(here / 'users.sql', text)}\n")
    return {**found, "replication_user": "copy", "replication_passwd": "copied", "node_list": "node-a node-b"}


def pgsql(here: Path) -> Mapping[str, str]:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not found:
        raise CannotRunError("missing: postgresql")
    data = owned(here / "data", "postgres")
    data.chmod(0o700)
    owned(Path("/run/postgresql"), "postgres")
    do("runuser", "-u", "postgres", "--", found[-1] / "initdb", "-D", data, "-A", "trust", "--no-sync")
    return {"pgctl": str(found[-1] / "pg_ctl"), "psql": str(found[-1] / "psql"), "pgdata": str(data),
            "pgport": str(port()), "start_opt": "-c fsync=off",
            "logfile": str(data / "log")}  # fmt: skip


def virtual_domain(here: Path) -> Mapping[str, str]:
    """A stand-in for virsh, whose domains are files; everything else is the agent's own."""
    shutil.copy(HERE / "virsh", "/usr/local/bin/virsh")
    Path("/run/virsh").mkdir(exist_ok=True)
    text = "<domain type='test'>\n<name>guest</name>\n<memory>1024</memory>\n</domain>\n"
    return {"config": write(here / "guest.xml", text), "hypervisor": "test:///default"}


def machine_info(here: Path) -> Mapping[str, str]:
    """A stand-in for machinectl: where systemd-machined does not answer, the agent has no number to publish, calls
    attrd_updater with an empty -v and ends with its exit status, 64, under Pacemaker too."""
    write(Path("/usr/local/bin/machinectl"), "#!/bin/sh\necho 0 machines listed.\n", 0o755)
    return {"pidfile": f"{here}/pid"}


def filesystem_bind(here: Path) -> Mapping[str, str]:
    for name in ("source", "target"):
        (here / name).mkdir()
    return {"device": str(here / "source"), "directory": str(here / "target"), "fstype": "none", "options": "bind"}


def filesystem_loop(here: Path) -> Mapping[str, str]:
    device = loop(here)
    do("mkfs.ext4", "-q", device)
    (here / "target").mkdir()
    return {"device": device, "directory": str(here / "target"), "fstype": "ext4"}


def lvm_activate(here: Path) -> Mapping[str, str]:
    do("dmsetup", "version")
    device = loop(here)
    quick = ("--config", "activation{udev_sync=0 udev_rules=0} devices{use_devicesfile=0}")
    for command in (("pvcreate", device), ("vgcreate", "--addtag", "lab", "labgroup", device),
                    ("lvcreate", "-an", "-Wn", "-Zn", "-l", "4", "-n", "volume", "labgroup")):  # fmt: skip
        do(*command, *quick)
    return {"vgname": "labgroup", "vg_access_mode": "tagging", "tag": "lab"}


def exportfs(here: Path) -> Mapping[str, str]:
    (here / "shared").mkdir()
    return {"clientspec": f"{OWN_ADDRESS}/{PREFIX}", "directory": str(here / "shared"), "fsid": "7", "options": "rw",
            "wait_for_leasetime_on_stop": "false", "unlock_on_stop": "0"}  # fmt: skip


def anything(here: Path) -> Mapping[str, str]:
    return {"binfile": shutil.which("sleep") or "", "cmdline_options": "3600", "pidfile": f"{here}/pid"}


def symlink(here: Path) -> Mapping[str, str]:
    return {"link": f"{here}/link", "target": write(here / "target", "x")}


def rsyncd(here: Path) -> Mapping[str, str]:
    text = f"pid file = {here}/rsyncd.pid\nport = {port()}\naddress = 127.0.0.1\n[lab]\npath = {here}\n"
    return {"binpath": shutil.which("rsync") or "", "conffile": write(here / "rsyncd.conf", text),
            "pidfile": f"{here}/rsyncd.pid"}  # fmt: skip


def squid(here: Path) -> Mapping[str, str]:
    owned(here, "proxy")
    at = port()
    text = (f"http_port 127.0.0.1:{at}\npid_filename {here}/squid.pid\ncache deny all\naccess_log none\n"
            f"cache_log {here}/cache.log\nnetdb_filename none\ncoredump_dir {here}\n"
            "shutdown_lifetime 1 seconds\n")  # fmt: skip
    return {"squid_exe": "/usr/sbin/squid", "squid_conf": write(here / "squid.conf", text),
            "squid_pidfile": f"{here}/squid.pid", "squid_port": str(at)}  # fmt: skip


def postfix(here: Path) -> Mapping[str, str]:
    shutil.copytree("/etc/postfix", here / "etc", symlinks=True)
    owned(here / "data", "postfix")
    queue = here / "queue"
    queue.mkdir()
    shutil.copy("/usr/share/postfix/main.cf.dist", here / "etc" / "main.cf")
    settings = (f"queue_directory = {queue}\ndata_directory = {here}/data\ncommand_directory = /usr/sbin\n"
                "daemon_directory = /usr/lib/postfix/sbin\nmail_owner = postfix\nsetgid_group = postdrop\n"
                "inet_interfaces = 127.0.0.1\ncompatibility_level = 3.6\n"
                "maillog_file = /var/log/postfix.log\n")  # fmt: skip
    write(here / "etc" / "main.cf", settings)
    return {"config_dir": str(here / "etc"), "binary": "/usr/sbin/postfix"}


def slapd(here: Path) -> Mapping[str, str]:
    owned(here / "data", "openldap")
    owned(Path("/run/slapd"), "openldap")
    text = (f"include /etc/ldap/schema/core.schema\npidfile {here}/data/slapd.pid\nmoduleload back_mdb\n"
            f"modulepath /usr/lib/ldap\ndatabase mdb\nsuffix dc=lab\nrootdn cn=a,dc=lab\n"
            f"directory {here}/data\n")  # fmt: skip
    at = port()
    return {"config": write(here / "slapd.conf", text), "pidfile": f"{here}/data/slapd.pid", "user": "openldap",
            "group": "openldap", "services": f"ldap://127.0.0.1:{at}", "watch_suffix": "dc=none"}  # fmt: skip


def syslog_ng(here: Path) -> Mapping[str, str]:
    routes = f'source s {{ internal(); }};\ndestination d {{ file("{here}/log"); }};\n'
    text = f"@version: 3.38\n{routes}log {{ source(s); destination(d); }};\n"
    return {"configfile": write(here / "syslog-ng.conf", text), "syslog_ng_binary": "/usr/sbin/syslog-ng"}


def own_exec(here: Path) -> Mapping[str, str]:
    return {"command": "sleep", "args": "3600", "ready_cmd": "true", "pidfile": f"{here}/pid"}


def own_http(here: Path) -> Mapping[str, str]:
    at = port()
    return {"command": f"{sys.executable} -m http.server --bind 127.0.0.1 {at}",
            "ready_url": f"http://127.0.0.1:{at}/", "cwd": str(here)}  # fmt: skip


def own_mount(here: Path) -> Mapping[str, str]:
    device = loop(here)
    do("mkfs.ext4", "-q", device)
    return {"device": device, "directory": f"{here}/mounted"}


def own_inference(here: Path) -> Mapping[str, str]:
    served = own_http(here)
    return {"command": served["command"], "cwd": str(here), "profile": "custom", "ready_path": "/",
            "url": served["ready_url"].rstrip("/")}  # fmt: skip


def own_proxy(here: Path) -> Mapping[str, str]:
    backend = port()
    ANSWERING.append(socket.create_server(("127.0.0.1", backend)))
    return {"listen": f"127.0.0.1:{port()}", "backends": f"127.0.0.1:{backend}", "pidfile": f"{here}/pid"}


def own_postgres(here: Path) -> Mapping[str, str]:
    found = pgsql(here)
    bind = f"-c unix_socket_directories={here}/data -c port={found['pgport']} -c listen_addresses=127.0.0.1"
    return {"pgdata": found["pgdata"], "bindir": str(Path(found["pgctl"]).parent), "pidfile": f"{here}/pid",
            "options": f"{bind} -c fsync=off"}  # fmt: skip


def own_postgres_clone(here: Path) -> Mapping[str, str]:
    return {**own_postgres(here), "node_list": "node-a"}


NO_ENGINE = "it needs a container engine"
CASES = (
    Case(f"{OWN}:dummy"), Case(f"{OWN}:stateful", meta=PROMOTABLE), Case(f"{OWN}:flaky", meta=PROMOTABLE),
    Case(f"{OWN}:tcp-proxy", own_proxy, level="10"), Case(f"{OWN}:exec", own_exec),
    Case(f"{OWN}:postgres", own_postgres),
    Case(f"{OWN}:postgres", own_postgres_clone, meta=PROMOTABLE, variant="clone"),
    Case(f"{OWN}:http-service", own_http), Case(f"{OWN}:vip", given(ip="10.77.0.52"), level="10"),
    Case(f"{OWN}:mount", own_mount, level="20"), Case(f"{OWN}:inference-server", own_inference, level="20"),
    Case(f"{OWN}:container", why_not=NO_ENGINE), Case(f"{OWN}:sys-health", meta=CLONE),
    Case(f"{OWN}:gpu-health", meta=CLONE, why_not="it needs an NVIDIA device"),
    Case(f"{HEARTBEAT}:Dummy", given(state="{here}/state")),
    Case(f"{HEARTBEAT}:dummypy", given(state="{here}/state")),
    Case(f"{HEARTBEAT}:Stateful", given(state="{here}/state"), meta=PROMOTABLE),
    Case(f"{HEARTBEAT}:Delay", given(startdelay="0", stopdelay="0", mondelay="0")),
    Case(f"{HEARTBEAT}:MailTo", given(email="root@localhost"), programs=("mail",)),
    Case(f"{HEARTBEAT}:anything", anything),
    Case(f"{HEARTBEAT}:symlink", symlink),
    Case(f"{HEARTBEAT}:IPaddr2", given(ip="10.77.0.50", cidr_netmask="24", nic=INTERFACE)),
    Case(f"{HEARTBEAT}:IPaddr2", given(ip="10.77.0.51", cidr_netmask="24"), variant="found by route"),
    Case(f"{HEARTBEAT}:IPsrcaddr", given(ipaddress=SECOND_ADDRESS, cidr_netmask="24")),
    Case(f"{HEARTBEAT}:Route", given(destination="10.99.0.0/24", gateway="10.77.0.2")),
    Case(f"{HEARTBEAT}:SendArp", given(ip=OWN_ADDRESS, nic=INTERFACE)),
    Case(f"{HEARTBEAT}:ethmonitor", given(interface=INTERFACE, repeat_count="1", repeat_interval="1"), meta=CLONE),
    Case(f"{HEARTBEAT}:iface-vlan", given(vlan_interface=INTERFACE, vlan_id="7", vlan_name="lab0.7")),
    Case(f"{HEARTBEAT}:iface-bridge", given(bridge_name="labbr", bridge_slaves=NEIGHBOUR), programs=("brctl",)),
    Case(f"{HEARTBEAT}:iface-macvlan", given(device=INTERFACE, name="labmac")),
    Case(f"{HEARTBEAT}:portblock", given(protocol="tcp", portno="4711", action="block"), programs=("iptables",)),
    Case(f"{HEARTBEAT}:Filesystem", filesystem_bind, variant="bind"),
    Case(f"{HEARTBEAT}:Filesystem", filesystem_loop, programs=("mkfs.ext4",), variant="ext4 on a loop", level="20"),
    Case(f"{HEARTBEAT}:LVM-activate", lvm_activate, programs=("vgcreate", "dmsetup")),
    Case(f"{HEARTBEAT}:exportfs", exportfs, programs=("exportfs",)),
    Case(f"{HEARTBEAT}:nfsserver", given(nfs_shared_infodir="{here}/nfs"), programs=("rpc.nfsd",)),
    Case(f"{HEARTBEAT}:nginx", nginx, programs=("nginx",), level="10"),
    Case(f"{HEARTBEAT}:apache", apache, programs=("apache2",), level="10"),
    Case(f"{HEARTBEAT}:named", named, programs=("named", "host")),
    Case(f"{HEARTBEAT}:redis", redis, programs=("redis-server",), meta=PROMOTABLE),
    Case(f"{HEARTBEAT}:mysql", mariadb, programs=("mariadbd",)),
    Case(f"{HEARTBEAT}:mariadb", mariadb_replicated, programs=("mariadbd",), meta=PROMOTABLE),
    Case(f"{HEARTBEAT}:galera", why_not="it starts with three nodes of a cluster, which the stand-in is not"),
    Case(f"{HEARTBEAT}:pgsql", pgsql, programs=("psql",)),
    Case(f"{HEARTBEAT}:rabbitmq-cluster", programs=("rabbitmqctl",), meta=CLONE),
    Case(f"{HEARTBEAT}:rsyncd", rsyncd, programs=("rsync",)),
    Case(f"{HEARTBEAT}:Squid", squid, programs=("squid",)),
    Case(f"{HEARTBEAT}:postfix", postfix, programs=("postfix",)),
    Case(f"{HEARTBEAT}:slapd", slapd, programs=("slapd",)),
    Case(f"{HEARTBEAT}:syslog-ng", syslog_ng, programs=("syslog-ng",)),
    Case(f"{HEARTBEAT}:VirtualDomain", virtual_domain, variant="a stand-in for virsh"),
    Case(f"{HEARTBEAT}:docker", why_not=NO_ENGINE), Case(f"{HEARTBEAT}:podman", why_not=NO_ENGINE),
    Case(f"{HEARTBEAT}:machine-info", machine_info, meta=CLONE, variant="a stand-in for machinectl"),
    Case(f"{PACEMAKER}:Dummy", given(state="{here}/state")),
    Case(f"{PACEMAKER}:Stateful", given(state="{here}/state"), meta=PROMOTABLE),
    Case(f"{PACEMAKER}:ping", given(host_list="127.0.0.1", dampen="0", pidfile="{here}/pid", attempts="1"), meta=CLONE),
    Case(f"{PACEMAKER}:HealthCPU", given(state="{here}/state"), meta=CLONE),
    Case(f"{PACEMAKER}:HealthIOWait", given(state="{here}/state"), meta=CLONE),
    Case(f"{PACEMAKER}:SysInfo", given(pidfile="{here}/pid", delay="0", min_disk_free="1M"), meta=CLONE),
    Case(f"{PACEMAKER}:attribute", given(name="lab", state="{here}/state"), meta=CLONE),
    Case(f"{PACEMAKER}:ifspeed", given(iface=INTERFACE, name="speed"), meta=CLONE),
    Case(f"{PACEMAKER}:ClusterMon", why_not="crm_mon as a daemon is refused: crm history events says what happens"),
)
