"""The words between the commands of the tour, and how both become a page."""

HEAD = """\
# The first hour

From empty machines to a running cluster, which then grows, loses a machine, replaces it, and is restored in
another place.
Everything below was typed on fresh machines by `make tour`, and what it printed is shown as it came; only tokens are
cut short. The machines are made of namespaces (`tests/lab`), so no systemd runs on them, and the two daemons are
started by hand; with systemd, `init` and `join` start them. Run it yourself: `make tour` (root, Linux).

More about each step: [install](howto/install.md), [members and certificates](howto/members.md),
[back up and restore](howto/back-up-and-restore.md).
"""

TEXTS = {
    "install": """\
On every machine, the same. `/opt/wheels` was filled by `pip wheel --wheel-dir wheels .` on a machine that reaches a
package index; where all machines do, leave out `--no-index --find-links /opt/wheels`.
""",
    "begin": """\
The first machine makes the cluster: its authority, which will admit the others; its own key and certificate; its empty
state. `--interface` (or `--address HOST:PORT`) says where the others will reach it.
""",
    "start": """\
As it says:
""",
    "grow": """\
A node of the cluster invites; what it prints is typed on the new machine, within the hour. The new machine makes its
own key, and makes sure that it speaks with this cluster before it says anything. It first gets the whole log, without
a vote; once it has caught up, it votes.
""",
    "again": """\
The same for the third:
""",
    "protect": """\
Without a way to fence a node, its services are not recovered on another node; so the fence device comes first.
`fence_lab` is the power switch of these machines; yours is perhaps `fence_ipmilan` or `fence_apc`.
""",
    "five": """\
Five voters survive the loss of two. Two more machines, installed like the first:
""",
    "lose": """\
`web` runs on n3, and somebody pulls its power cord.
""",
    "cord": """\
The cord is out. A few seconds later:
""",
    "replace": """\
The machine will not come back. Its name does not come back either: what it had promised to the others may be lost with
it. So it is removed, and a new machine comes under a new name.
""",
    "look-after": """\
A certificate that ends soon is named in the first lines of `crm status`. Its node makes another key, has it signed
where the authority's key is, and continues without an interruption. Addresses change while the cluster runs: first
both, then the new one alone. And somebody else may lead.
""",
    "restore": """\
A backup is one file: the configuration and who the cluster is, no keys.
""",
    "copied": """\
Far away, on n7, with a copy of that file. While the old cluster lives, nobody makes another of it:
""",
    "dead": """\
Then the whole site loses its power, for good.
""",
    "end": """\
The new cluster begins with one node; `crm cluster invite` lets the next ones in.
""",
}


class Page:
    """What was typed and printed, in order."""

    def __init__(self) -> None:
        self.commands = 0
        self._parts: list[str] = []
        self._block: list[str] = []

    def heading(self, title: str, text: str) -> None:
        """Begin a section with its words."""
        self._end_block()
        self._parts.append(f"\n## {title}\n\n{TEXTS[text]}")

    def text(self, name: str) -> None:
        """Go on with words."""
        self._end_block()
        self._parts.append(f"\n{TEXTS[name]}")

    def typed(self, machine: str, command: str, printed: str, status: int) -> None:
        """Add a command with what it printed."""
        self.commands += 1
        for line in command.splitlines():
            self._block.append(f"{machine}# {line}")
        self._block += [line.rstrip() for line in printed.rstrip("\n").splitlines()]
        if status:
            self._block.append(f"(exit status {status})")
        self._block.append("")

    def _end_block(self) -> None:
        if self._block:
            lines = "\n".join(self._block).rstrip()
            self._parts.append(f"\n```console\n{lines}\n```\n")
            self._block = []

    def render(self) -> str:
        """Return the page without its head."""
        self._end_block()
        return "".join(self._parts)
