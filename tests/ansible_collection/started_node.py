"""Start the daemons of a machine that the role has made a node, as its systemd would; they outlive this process."""

import sys
import uuid
from pathlib import Path

import yaml

from haclusterd.entry_points.local_cluster import LocalCluster, LocalNode
from haclusterd.model.ids import NodeName
from haclusterd.runtime.settings import CONFIGURATION_FILE


def main() -> None:
    directory, mark, name, port = Path(sys.argv[1]), sys.argv[2], NodeName(sys.argv[3]), int(sys.argv[4])
    home = directory / name
    node = LocalNode(name, home / "etc", home / "state", home / "run", home / "log", home / "boot_id", port)
    node.boot_id_file.write_text(f"{uuid.uuid4()}\n")
    file = node.bundle / CONFIGURATION_FILE
    document = yaml.safe_load(file.read_text())
    file.write_text(yaml.safe_dump({**document, "boot-id-file": str(node.boot_id_file), "development": True}))
    cluster = LocalCluster(directory, names=(name,), mark=mark, environment={"PYTHONUNBUFFERED": "1"})
    cluster.nodes[name] = node
    cluster.start([name])


if __name__ == "__main__":
    main()
