"""What the watcher knows of its machine's GPUs: who they are, how they are, since when something is wrong.

No processes and no waiting: it is given sweeps, Xid errors and the time, and says what is to be reported. A device is
known by its UUID; indices change with a reset and addresses may. What is missing for two looks is left out of the
report: the cluster remembers it, until a person forgets it.
"""

from __future__ import annotations

import os
import re

from haclusterd.agents import gpu_faults as faults
from haclusterd.agents.gpu_fault_table import FAILED, LEVELS, OK
from haclusterd.agents.gpu_kernel_log import Xid, address_of, bus_of
from haclusterd.agents.gpu_surroundings import Surroundings, has_other_firmware, is_stuck_in_driver, slow_ones
from haclusterd.agents.gpu_users import Ours, name_of
from haclusterd.agents.process_table import read_stat

TYPE_CHECKING = False  # As typing says it; importing that takes half a megabyte.
if TYPE_CHECKING:
    from typing import Any

PRETENDED_S_MAX = 86_400
HELD_MIB = 16
"""What may be in use beyond the driver's own reserve on a device that nobody uses; a context takes hundreds."""
SAME_XID_S = 2.0
"""An error comes by the kernel log and by NVML: the same number of the same device within this time is one."""
XIDS_KEPT = 200
USERS_MAX = 32
USED_LOOKS = 3
"""What uses a device for fewer looks in a row is not reported: short jobs come and go."""
REPLAYS_A_MINUTE = 8
LINK_ERRORS_A_MINUTE = 100 * 60
UUID = re.compile(r"(?:GPU|MIG)-[0-9A-Za-z-]{1,80}\Z")
NVIDIA, DISPLAY = "0x10de", "0x03"
DRIVER_NOT_LOADED = 9
LASTING = "driver-hangs-lasting"


class Sweep:
    """What one look at all devices has found so far."""

    def __init__(self) -> None:
        self.driver: dict[str, Any] = {}
        self.devices: list[dict[str, Any]] = []
        self.links: dict[str, list[int]] | None = None
        self.hung: list[int] = []
        """Indices."""
        self.is_driver_hung = False
        self.is_complete = True
        """Everybody was asked."""

    def take(self, item: dict[str, Any]) -> None:
        """Take a line of the child in."""
        if "driver" in item:
            self.driver = item
        elif "device" in item:
            self.devices.append(item)
        elif "links" in item:
            self.links = item["links"]

    def answered(self) -> list[int]:
        """Return the indices that have answered."""
        return [item["device"] for item in self.devices]

    @property
    def is_answered(self) -> bool:
        """Tell whether the driver and all devices have answered."""
        return bool(self.driver) and not self.hung and not self.is_driver_hung


class Device:
    """One GPU."""

    def __init__(self, uuid: str) -> None:
        self.uuid = uuid
        self.index = -1
        self.bus = ""
        self.seen: dict[str, Any] = {}
        """Its newest whole answer."""
        self.tracks: dict[str, Any] = {}
        self.links = 0
        self.group = ""
        self.numa = -1
        self.counts: dict[str, tuple[float, int]] = {}
        """What was counted at the newest answer, and when."""
        self.users: dict[tuple[str, str], int] = {}
        """By `PID COMMAND` and resource (empty: of none): looks in a row."""


class Inventory:
    """All devices of this machine."""

    def __init__(self, options: faults.Options, settings: dict[str, Any], ours: Ours) -> None:
        self._options = options
        self._ours = ours
        self._rules = options.table.rules()
        self._sysfs, self._proc = settings["sysfs"], settings["proc"]
        self._declared: int = settings["declared"]
        self.hung: list[int] = []
        """Indices that hung at the newest sweep."""
        self.is_known = False
        """There was a sweep: it can be said what there is, or what keeps it from being seen."""
        self.is_driver_well = True
        self.version = ""
        self._devices: dict[str, Device] = {}
        self._node_tracks: dict[str, Any] = {}
        self._driver_code = 0
        self._xids: dict[str, list[Xid]] = {}
        self._switches: list[Xid] = []
        self._twice: set[str] = set()
        self._unnamed: list[int] = []
        self._pretended: dict[str, tuple[str, float]] = {}
        self._instances: dict[str, str] = {}
        self._why_not = ""
        self.surroundings = Surroundings(self._sysfs, self._proc)
        self._around: dict[str, str] = {}
        """Faults of the node that its files show, with what they are about."""
        self._recovered: dict[str, float] = {}

    # What is asked

    def is_instance(self, name: str) -> bool:
        """Tell whether a name is that of a MIG instance."""
        return name in self._instances

    def name_at(self, bus: str) -> str:
        """Return the UUID of the device at a bus address without function; empty: none is known there."""
        return next((uuid for uuid, device in self._devices.items() if bus_of(device.bus) == bus), "")

    def driver_is_away(self) -> bool:
        """Tell whether there is no driver in the kernel: then nothing can use a device of it."""
        return self._driver_code == DRIVER_NOT_LOADED and not os.path.exists(f"{self._sysfs}/module/nvidia")

    def due(self, now: float) -> float:
        """Return when something ends by itself."""
        return min((until for _, until in self._pretended.values()), default=now + 60)

    # What happens

    def take_xid(self, xid: Xid) -> bool:
        """Keep an error; tell whether it is one that did not come by the other way already."""
        kept = self._xids.setdefault(xid.bus, [])
        for other in kept:
            if other.code == xid.code and abs(other.at - xid.at) < SAME_XID_S and not (other.pid and xid.pid):
                other.pid = other.pid or xid.pid
                return False
        self._xids[xid.bus] = [*kept, xid][-XIDS_KEPT:]
        return True

    def take_switches(self, errors: list[Xid]) -> None:
        """Keep errors of NVSwitches."""
        self._switches = [*self._switches, *errors][-XIDS_KEPT:]

    def pretend(self, wanted: dict[str, Any], now: float, wall: float) -> None:
        """Show devices in states that they have not: {ID: {"state": LEVEL, "until_ms": since 1970}}."""
        self._pretended = {
            str(name): (each["state"], now + min(each["until_ms"] / 1000 - wall, PRETENDED_S_MAX))
            for name, each in wanted.items()
            if isinstance(each, dict) and each.get("state") in LEVELS and isinstance(each.get("until_ms"), int)
        }

    def recovered(self, times: dict[str, float]) -> None:
        """Take note when devices (empty: all) were recovered: errors from before that count no more."""
        newest = {uuid for uuid, at in times.items() if self._recovered.get(uuid) != at}
        self._recovered = times
        for device in self._devices.values():
            if newest & {device.uuid, ""}:
                device.tracks = {}

    def judge(self, sweep: Sweep, now: float) -> None:
        """Take a sweep in."""
        code = sweep.driver.get("driver", 0)
        word, node = faults.faults_of_driver(
            code, is_hung=sweep.is_driver_hung, expected=self._declared or len(self._devices) or self.on_bus()
        )
        self.is_driver_well, self._driver_code = word == "ok", code
        self.hung = sweep.hung
        if word == "ok":
            self.version = sweep.driver.get("version", self.version)
            self._judge_devices(sweep, now)
        elif not self._devices:
            self._know_from_files()
        present = {name: self._options.level(name) for name in node}
        if any(now - xid.at < self._options.hold_s for xid in self._switches):
            present["nvswitch"] = self._options.level("nvswitch")
        self._around = self.surroundings.faults(now, self._options.hold_s)
        if has_other_firmware({uuid: device.seen for uuid, device in self._devices.items()}):
            self._around["version-skew"] = "devices of one model have different firmware"
        present.update({name: self._options.level(name) for name in self._around})
        # What is wrong from the start is not waited for.
        rules = self._rules if self.is_known else {LASTING: self._rules[LASTING]}
        self._node_tracks = faults.follow(self._node_tracks, present, rules)
        self.is_known = True

    def not_watched(self, why: str) -> None:
        """Take note that nobody can ask the driver."""
        self._why_not = why
        rules = self._rules if self._devices else {}
        self._node_tracks = faults.follow(
            self._node_tracks, {"not-watched": self._options.level("not-watched")}, rules,
            frozenset(self._node_tracks) - {"not-watched"},
        )  # fmt: skip
        if not self._devices:
            self._know_from_files()
        self.is_known = True

    def judge_log(self, now: float) -> None:
        """Take in what the kernel log has said since the newest sweep; it can only make things worse."""
        for device in self._devices.values():
            found = self._faults_of_log(device, now)
            for name, level in found.items():
                if level > device.tracks.get(name, (OK,))[0]:
                    device.tracks[name] = (level, 0, level)

    def _faults_of_log(self, device: Device, now: float) -> dict[str, int]:
        since = max(self._recovered.get(device.uuid, 0.0), self._recovered.get("", 0.0))
        xids = [xid for xid in self._xids.get(bus_of(device.bus), []) if xid.at > since]
        return faults.faults_of_log(xids, now, device.seen.get("recovery"), self._options)

    def _judge_devices(self, sweep: Sweep, now: float) -> None:
        answers = self._identify(sweep)
        slow = slow_ones({uuid: seen for uuid, seen in answers.items() if not seen["error"]})
        hung = {name for index in sweep.hung if (name := self._name_of_index(index))}
        self._unnamed = [index for index in sweep.hung if not self._name_of_index(index)]
        for uuid, device in list(self._devices.items()):
            seen = answers.get(uuid)
            held: frozenset[str] = frozenset()
            if uuid in hung:
                present = {name: self._options.level(name) for name in ("hang", "hang-lasts")}
            elif seen is not None:
                present, held = self._faults_of_answer(device, {**seen, "is_slow": uuid in slow}, now)
            elif sweep.is_complete:
                present = {"missing": self._options.level("missing")}
            else:
                present, held = {}, frozenset(device.tracks)
            present.update(self._faults_of_log(device, now))
            if uuid in self._twice:
                present["uuid-twice"] = self._options.level("uuid-twice")
            device.tracks = faults.follow(device.tracks, present, self._rules, held)
            if device.tracks.get("missing", (OK,))[0] == FAILED:
                del self._devices[uuid]
        if sweep.links is not None:
            self._group(sweep.links)

    def _identify(self, sweep: Sweep) -> dict[str, dict[str, Any]]:
        """Return the answers by UUID; devices seen for the first time are known from now on."""
        answers: dict[str, dict[str, Any]] = {}
        self._twice = set()
        for item in sweep.devices:
            uuid = item.get("uuid") or self._name_of_index(item["device"])
            if not UUID.match(uuid):
                continue
            if uuid in answers:
                self._twice.add(uuid)
                continue
            answers[uuid] = item
            device = self._devices.setdefault(uuid, Device(uuid))
            device.index = item["device"]
            if item.get("bus"):
                device.bus = address_of(item["bus"])
                device.numa = _number(_read(f"{self._sysfs}/bus/pci/devices/{device.bus}/numa_node"), -1)
            if not item["error"]:
                device.seen = {**device.seen, **item}
        return answers

    def _faults_of_answer(
        self, device: Device, seen: dict[str, Any], now: float
    ) -> tuple[dict[str, int], frozenset[str]]:
        memory = seen.get("memory") or (0, 0)
        is_partitioned = (seen.get("mig_mode") or (0, 0))[0] == 1
        seen["memory_held"] = seen.get("processes") == [] and memory[1] > HELD_MIB and not is_partitioned
        seen["stuck"] = any(self._is_stuck(pid) for pid in self._see_users(device, list(seen.get("processes") or ())))
        present = faults.faults_of_device(seen, device.links, self._options)
        held = faults.unjudged(seen)
        device.links = max(device.links, seen.get("links_up", 0))
        for name, limit, fault in (
            ("replays", REPLAYS_A_MINUTE, "pcie-replays"), ("link_errors", LINK_ERRORS_A_MINUTE, "nvlink-errors"),
        ):  # fmt: skip
            if _rate_a_minute(device, name, seen, now) > limit:
                present[fault] = self._options.level(fault)
        return present, held

    def _is_stuck(self, pid: int) -> bool:
        stat = read_stat(pid)
        return stat is not None and stat.state == "D" and is_stuck_in_driver(self._proc, pid)

    def _see_users(self, device: Device, pids: list[int]) -> list[int]:
        """Take in who uses a device; return all of them, those of its instances too."""
        for instance in device.seen.get("instances") or ():
            pids = [*pids, *instance.get("processes", ())]
        users = [(name_of(pid), self._ours.resource_of(pid)) for pid in sorted(set(pids))]
        device.users = {user: device.users.get(user, 0) + 1 for user in users}
        return pids

    def _group(self, links: dict[str, list[int]]) -> None:
        """Name the groups of devices that reach each other: by the first of their addresses."""
        by_index = {device.index: device for device in self._devices.values()}
        group = {index: index for index in by_index}
        for one, others in links.items():
            for other in others:
                if int(one) in group and other in group:
                    low, high = sorted((group[int(one)], group[other]))
                    group = {index: low if value == high else value for index, value in group.items()}
        for text in links:
            device = by_index.get(int(text))
            if device is not None:
                first = by_index[group[device.index]]
                is_alone = sum(value == group[device.index] for value in group.values()) == 1
                device.group = "" if is_alone else f"nvlink-{first.bus}"

    def _name_of_index(self, index: int) -> str:
        """Return the UUID of the device with an index: as it was, else by the order of addresses."""
        for uuid, device in self._devices.items():
            if device.index == index:
                return uuid
        files = self._files()
        return files[index][1] if index < len(files) else ""

    def _files(self) -> list[tuple[str, str, str]]:
        """Return address, UUID and model of what the driver shows in /proc, in order of addresses."""
        directory = f"{self._proc}/driver/nvidia/gpus"
        found = []
        for address in sorted(os.listdir(directory)) if os.path.isdir(directory) else ():
            lines = _read(f"{directory}/{address}/information").split("\n")
            values = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
            found.append((address_of(address), values.get("GPU UUID", ""), values.get("Model", "")))
        return found

    def _know_from_files(self) -> None:
        for bus, uuid, model in self._files():
            if UUID.match(uuid):
                device = self._devices.setdefault(uuid, Device(uuid))
                device.bus, device.seen = bus, {"model": model}

    def on_bus(self) -> int:
        """Return how many GPUs of NVIDIA the PCI bus shows."""
        return len(on_bus(self._sysfs))

    # What is reported

    def report(self, now: float) -> dict[str, Any]:
        """Return all that is known."""
        self._pretended = {name: each for name, each in self._pretended.items() if each[1] > now}
        node = self._faults_of_node()
        shown: list[dict[str, Any]] = []
        self._instances = {}
        for device in self._devices.values():
            state, reasons = self._verdict(device, node)
            rung = faults.rung_for([reason.partition(":")[0] for reason in reasons], self._options)
            shown.append({**_whole(device, state, reasons), "rung": rung})
            for instance in device.seen.get("instances") or ():
                if UUID.match(instance["uuid"]):
                    self._instances[instance["uuid"]] = device.uuid
                    shown.append(_instance(device, instance, state, reasons))
        for item in shown:
            pretended = self._pretended.get(item["id"])
            if pretended is not None:
                item["state"] = pretended[0]
                item["reasons"] = ["simulated: by crm gpu simulate-fail", *item["reasons"]]
        return {
            "devices": sorted(shown, key=lambda item: item["id"]),
            "driver": self.version,
            "trouble": self._trouble(node),
        }

    def _faults_of_node(self) -> list[tuple[int, str]]:
        active = [(track[0], name) for name, track in self._node_tracks.items() if track[0]]
        return sorted(active, key=lambda item: (-item[0], item[1]))

    def _verdict(self, device: Device, node: list[tuple[int, str]]) -> tuple[str, list[str]]:
        """Return a device's state, and the reasons, the gravest first; what its node has counts for it too."""
        active = [(track[0], name) for name, track in device.tracks.items() if track[0]]
        active += [item for item in node if item[1] != "nvswitch" or device.group]
        active.sort(key=lambda item: (-item[0], item[1]))
        text_of = self._options.table.text_of
        return LEVELS[active[0][0] if active else OK], [f"{name}: {text_of(name)}" for _, name in active]

    def _trouble(self, node: list[tuple[int, str]]) -> str:
        text_of, around = self._options.table.text_of, self._around
        texts = [f"{name}: {text_of(name)}" + (f" ({around[name]})" if name in around else "") for _, name in node]
        if any(name == "not-watched" for _, name in node):
            texts.append(self._why_not)
        if self._unnamed:
            indices = ", ".join(map(str, self._unnamed))
            texts.append(f"hang: the device with index {indices} has not answered yet, so that it has no name")
        expected = self._declared or self.on_bus()
        if self.is_driver_well and len(self._devices) + len(self._unnamed) < expected:
            what = "declared" if self._declared else "on the PCI bus"
            texts.append(f"devices-missing: {len(self._devices)} of {expected} {what} are seen by the driver")
        return "; ".join(texts)


def _rate_a_minute(device: Device, name: str, seen: dict[str, Any], now: float) -> float:
    """Return how fast a counter rises, and keep it for the next time."""
    if name not in seen:
        return 0.0
    before = device.counts.get(name)
    device.counts[name] = (now, seen[name])
    if before is None or now <= before[0]:
        return 0.0
    return float(seen[name] - before[1]) * 60 / (now - before[0])


def on_bus(sysfs: str = "/sys") -> list[str]:
    """Return the addresses of NVIDIA's GPUs (display controllers, VGA and 3D) on the PCI bus."""
    directory = f"{sysfs}/bus/pci/devices"
    found = []
    for address in sorted(os.listdir(directory)) if os.path.isdir(directory) else ():
        if _read(f"{directory}/{address}/vendor").strip() != NVIDIA:
            continue
        if _read(f"{directory}/{address}/class").startswith(DISPLAY):
            found.append(address)
    return found


def _whole(device: Device, state: str, reasons: list[str]) -> dict[str, Any]:
    seen = device.seen
    mig, ecc = seen.get("mig_mode") or (0, 0), seen.get("ecc_mode")
    users = sorted(user for user, looks in device.users.items() if looks >= USED_LOOKS)
    return {
        "id": device.uuid, "kind": "gpu", "bus": device.bus, "model": seen.get("model", ""),
        "memory_mib": (seen.get("memory") or (0, 0))[0], "link": device.group, "numa": device.numa,
        "is_partitioned": mig[0] == 1, "has_ecc": None if ecc is None else ecc[0] == 1,
        "state": state, "reasons": reasons, "users": [list(user) for user in users[:USERS_MAX]],
    }  # fmt: skip


def _instance(device: Device, instance: dict[str, Any], state: str, reasons: list[str]) -> dict[str, Any]:
    return {
        "id": instance["uuid"], "kind": "mig", "bus": device.bus, "model": device.seen.get("model", ""),
        "memory_mib": (instance.get("memory") or (0, 0))[0], "numa": device.numa, "parent": device.uuid,
        "profile": instance["profile"], "state": state, "reasons": reasons,
    }  # fmt: skip


def _read(path: str) -> str:
    try:
        with open(path, "rb") as stream:
            return stream.read(4096).decode("utf-8", "replace")
    except OSError:
        return ""


def _number(text: str, otherwise: int) -> int:
    try:
        return int(text)
    except ValueError:
        return otherwise
