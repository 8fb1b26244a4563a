"""The parameters of a bundle's container: what the agents of Docker and Podman are to run.

Their text is Pacemaker's to the letter: a difference would restart every container of a running cluster. Source:
Pacemaker Explained, "Bundle Properties".
"""

from haclusterd.model.configuration import Bundle, BundleNetwork, PortMapping, StorageMapping

REMOTE_PORT = "3121"
_REMOTE_DAEMON = "/usr/sbin/pacemaker-remoted"
_KEY = "/etc/pacemaker/authkey"
_LOGS = "/var/log/pacemaker/bundles"
_LOG_TARGET = "/var/log"

Pairs = tuple[tuple[str, str], ...]


def container_parameters(item: Bundle, host: str, number: int, addresses: tuple[str, ...], *, has_child: bool) -> Pairs:
    """Return the parameters of the container `number`, whose host name is `host`; with a child, its daemon runs it."""
    network = item.network or BundleNetwork()
    address = addresses[number] if addresses else ""
    parameters = [("image", item.image), ("allow_pull", "true"), ("force_kill", "false"), ("reuse", "false")]
    options = _options(item, network, host, address, has_child=has_child)
    parameters.append(("run_opts", f"{options} {_hosts(item, network, addresses)}"))
    parameters.append(("mount_points", ",".join(_targets(item, host, has_child=has_child))))
    command = item.run_command or (_REMOTE_DAEMON if has_child else "")
    if command:
        parameters.append(("run_cmd", command))
    parameters.append(("monitor_cmd", "/bin/true"))
    return tuple(parameters)


def _options(item: Bundle, network: BundleNetwork, host: str, address: str, *, has_child: bool) -> str:
    words = [" --restart=no"] if item.engine == "docker" else []
    if address:
        words.append(f" -h {host}")
    words.append(" -e PCMK_stderr=1")
    if item.network_mode:
        words.append(f" --net={item.network_mode}")
    words.append(f" -e PCMK_remote_port={network.control_port or REMOTE_PORT}")
    words += [_mount(mapping, host) for mapping in _mappings(item, has_child=has_child)]
    words += [_publish(port, address, item.network_mode) for port in _ports(network, has_child=has_child)]
    if item.options:
        words.append(f" {item.options}")
    return "".join(words)


def _mappings(item: Bundle, *, has_child: bool) -> list[StorageMapping]:
    mappings = list(item.storage)
    if has_child:
        mappings.append(StorageMapping("key", _KEY, _KEY))
        if all(mapping.target_directory != _LOG_TARGET for mapping in item.storage):
            mappings.append(StorageMapping("logs", _LOG_TARGET, source_directory_root=_LOGS))
    return mappings


def _mount(mapping: StorageMapping, host: str) -> str:
    source = mapping.source_directory
    if mapping.source_directory_root:
        source = f"{mapping.source_directory_root}/{host}"
    options = f":{mapping.options}" if mapping.options else ""
    return f" -v {source}:{mapping.target_directory}{options}"


def _targets(item: Bundle, host: str, *, has_child: bool) -> list[str]:
    """Directories of the host that the container's start has to make: one for each container."""
    return [
        f"{mapping.source_directory_root}/{host}"
        for mapping in _mappings(item, has_child=has_child)
        if mapping.source_directory_root
    ]


def _ports(network: BundleNetwork, *, has_child: bool) -> list[PortMapping]:
    ports = list(network.ports)
    if has_child:
        ports.append(PortMapping("control", network.control_port or REMOTE_PORT))
    return ports


def _publish(port: PortMapping, address: str, mode: str) -> str:
    outer = port.port or port.port_range
    inner = port.internal_port or outer
    if address:
        return f" -p {address}:{outer}:{inner}"
    return "" if mode == "host" else f" -p {outer}:{inner}"


def _hosts(item: Bundle, network: BundleNetwork, addresses: tuple[str, ...]) -> str:
    """Make the replicas' names known to each other."""
    if network.adds_host is False:
        return "".join(f" --hosts-entry={address}={item.id}-{number}" for number, address in enumerate(addresses))
    return "".join(f" --add-host={item.id}-{number}:{address}" for number, address in enumerate(addresses))
