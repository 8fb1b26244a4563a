"""The scripts of `crm script`: well-known services as crm statements, with what is to be said of each.

A word with a parameter that has no value is left out, and a line of which only its first word is left. Agents are those
of the resource-agents and fence-agents packages; what they are given beside is their own.
"""

from collections.abc import Mapping

from haclusterd.verbs.answers.crm import Script, ScriptParameter


def _needed(name: str, help_: str, example: str) -> ScriptParameter:
    return ScriptParameter(name, help_, is_required=True, default="", example=example)


def _may(name: str, help_: str, default: str = "") -> ScriptParameter:
    return ScriptParameter(name, help_, is_required=False, default=default, example=default)


def _script(name: str, category: str, help_: str, *parameters: ScriptParameter, statements: str) -> Script:
    return Script(name, category, help_, (_needed("id", "id of the resource", name), *parameters), statements)


_IP = """primitive {ip_id} ocf:heartbeat:IPaddr2
    params ip={ip} cidr_netmask={cidr_netmask}
    op monitor interval=10s timeout=20s"""
_ADDRESS = (
    _needed("ip", "address that moves with it", "192.0.2.10"), _may("cidr_netmask", "length of its network", "24"),
    _may("ip_id", "id of the address", "{id}-ip"),
)  # fmt: skip
_TIMES = "    op start timeout={start_timeout} interval=0\n    op stop timeout={stop_timeout} interval=0\n"
_DATABASE_TIMES = (_may("start_timeout", "longest start", "120s"), _may("stop_timeout", "longest stop", "120s"))

_ALL = (
    _script("virtual-ip", "Network", "An address that moves", *_ADDRESS[:2],
            _may("nic", "network interface"), statements="""primitive {id} ocf:heartbeat:IPaddr2
    params ip={ip} cidr_netmask={cidr_netmask} nic={nic}
    op monitor interval=10s timeout=20s
"""),
    _script("mailto", "Network", "Mail when a service moves",
            _needed("email", "who gets it", "root@localhost"), _may("subject", "its subject"),
            statements="""primitive {id} ocf:heartbeat:MailTo
    params email={email} subject={subject}
    op monitor interval=10s timeout=10s
"""),
    _script("filesystem", "Storage", "A file system that is mounted on one node",
            _needed("device", "block device or export", "/dev/vg/lv"), _needed("directory", "mount point", "/srv"),
            _needed("fstype", "its type", "xfs"), _may("options", "mount options"),
            statements="""primitive {id} ocf:heartbeat:Filesystem
    params device={device} directory={directory} fstype={fstype} options={options}
    op start timeout=60s interval=0
    op stop timeout=60s interval=0
    op monitor interval=20s timeout=40s
"""),
    _script("lvm", "Storage", "A volume group that is active on one node",
            _needed("vgname", "volume group", "vg"),
            _may("vg_access_mode", "how other nodes are kept out", "system_id"),
            statements="""primitive {id} ocf:heartbeat:LVM-activate
    params vgname={vgname} vg_access_mode={vg_access_mode}
    op start timeout=90s interval=0
    op stop timeout=90s interval=0
    op monitor interval=30s timeout=90s
"""),
    _script("drbd", "Storage", "A replicated block device, promoted on one node",
            _needed("drbd_resource", "its name in drbd.conf", "r0"), statements="""primitive {id} ocf:linbit:drbd
    params drbd_resource={drbd_resource}
    op start timeout=240s interval=0
    op stop timeout=100s interval=0
    op monitor interval=29s role=Promoted
    op monitor interval=31s role=Unpromoted
clone {id}-clone {id}
    meta promotable=true promoted-max=1 clone-max=2 notify=true interleave=true
"""),
    _script("raid1", "Storage", "A RAID of the kernel that runs on one node",
            _needed("raidconf", "its mdadm.conf", "/etc/mdadm.conf"), _needed("raiddev", "its device", "/dev/md0"),
            statements="""primitive {id} ocf:heartbeat:mdraid
    params mdadm_conf={raidconf} md_dev={raiddev}
    op monitor interval=30s timeout=20s
"""),
    _script("exportfs", "NFS", "A directory that is exported by NFS",
            _needed("directory", "which", "/srv/share"), _needed("fsid", "its number among exports", "1"),
            _may("clientspec", "who may mount it", "*"), _may("options", "of the export", "rw,no_root_squash"),
            statements="""primitive {id} ocf:heartbeat:exportfs
    params directory={directory} fsid={fsid} clientspec={clientspec} options={options}
    op monitor interval=30s timeout=20s
"""),
    _script("nfsserver", "NFS", "A server of NFS with its address",
            _needed("nfs_shared_infodir", "its state, on shared storage", "/srv/nfsinfo"), *_ADDRESS,
            statements=f"""primitive {{id}} ocf:heartbeat:nfsserver
    params nfs_shared_infodir={{nfs_shared_infodir}}
    op start timeout=40s interval=0
    op monitor interval=10s timeout=20s
{_IP}
group {{id}}-group {{id}} {{ip_id}}
"""),
    _script("apache", "Server", "Apache with its address",
            _may("configfile", "its configuration", "/etc/apache2/apache2.conf"), _may("statusurl", "status page"),
            *_ADDRESS, statements=f"""{_IP}
primitive {{id}} ocf:heartbeat:apache
    params configfile={{configfile}} statusurl={{statusurl}}
    op start timeout=40s interval=0
    op stop timeout=60s interval=0
    op monitor interval=10s timeout=20s
group {{id}}-group {{ip_id}} {{id}}
"""),
    _script("nginx", "Server", "nginx with its address",
            _may("configfile", "its configuration", "/etc/nginx/nginx.conf"), *_ADDRESS,
            statements=f"""{_IP}
primitive {{id}} ocf:heartbeat:nginx
    params configfile={{configfile}}
    op start timeout=40s interval=0
    op stop timeout=60s interval=0
    op monitor interval=10s timeout=30s
group {{id}}-group {{ip_id}} {{id}}
"""),
    _script("haproxy", "Server", "HAProxy, as a unit of systemd, with its address", *_ADDRESS,
            statements=f"""{_IP}
primitive {{id}} systemd:haproxy
    op monitor interval=10s timeout=20s
group {{id}}-group {{ip_id}} {{id}}
"""),
    _script("systemd", "Server", "Any unit of systemd", _needed("unit", "its name, without .service", "nginx"),
            statements="""primitive {id} systemd:{unit}
    op start timeout=60s interval=0
    op stop timeout=60s interval=0
    op monitor interval=10s timeout=20s
"""),
    _script("database", "Database", "MariaDB or MySQL on one node",
            _may("config", "its configuration", "/etc/my.cnf"), _may("datadir", "its data", "/var/lib/mysql"),
            *_DATABASE_TIMES, statements=f"""primitive {{id}} ocf:heartbeat:mysql
    params config={{config}} datadir={{datadir}}
{_TIMES}    op monitor interval=20s timeout=30s
"""),
    _script("postgresql", "Database", "PostgreSQL on one node",
            _needed("pgdata", "its data", "/var/lib/postgresql/15/main"), _needed("pgctl", "its pg_ctl",
                                                                                "/usr/lib/postgresql/15/bin/pg_ctl"),
            *_DATABASE_TIMES, statements=f"""primitive {{id}} ocf:heartbeat:pgsql
    params pgdata={{pgdata}} pgctl={{pgctl}}
{_TIMES}    op monitor interval=20s timeout=30s
"""),
    _script("libvirt", "Fencing", "Fencing of virtual machines by their host",
            _needed("ip", "the host", "192.0.2.1"), _needed("username", "who may switch them", "root"),
            _may("identity_file", "key of ssh"), _may("hosts", "which nodes it fences"),
            statements="""primitive {id} stonith:fence_virsh
    params ip={ip} username={username} identity_file={identity_file} pcmk_host_list={hosts}
    op monitor interval=60s timeout=60s
"""),
    _script("vmware", "Fencing", "Fencing of virtual machines by vCenter",
            _needed("ip", "vCenter or host", "192.0.2.1"), _needed("username", "who may switch them", "fence"),
            _needed("password", "its password", "secret"), _may("hosts", "which nodes it fences"),
            statements="""primitive {id} stonith:fence_vmware_soap
    params ip={ip} username={username} password={password} ssl=1 pcmk_host_list={hosts}
    op monitor interval=60s timeout=60s
"""),
    _script("sbd", "Fencing", "Fencing through a shared disk",
            _needed("sbd_device", "disks, with commas", "/dev/disk/by-id/sbd"),
            statements="""primitive {id} stonith:fence_sbd
    params devices={sbd_device}
    op monitor interval=60s timeout=30s
"""),
)  # fmt: skip
SCRIPTS: Mapping[str, Script] = {
    each.name: each for each in sorted(_ALL, key=lambda script: (script.category, script.name))
}
