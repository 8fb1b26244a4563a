"""The verbs of `crm gpu`."""

from haclusterd.verbs.arguments import Argument, Kind
from haclusterd.verbs.verb import Cost, Family, Permission, Verb
from haclusterd.verbs.words import Completes, Words

_DOC = "its UUID, the beginning of it, or NODE:PCI-ADDRESS"
_DEVICE = Argument("device", Kind.WORD, _DOC, is_required=True, completes=Completes.DEVICE)
_ANY_DEVICE = Argument("device", Kind.WORD, f"{_DOC}; left out: all", completes=Completes.DEVICE)

GPU = Family("gpu", "GPUs: their state, what uses them, what to do when one fails", (
    Verb("gpu.list", Permission.READ, "Show the devices of nodes, how they are and who holds them", (
        Argument("node", Kind.WORD, "which node; left out: all", completes=Completes.NODE),
    ), (
        Words(("crm gpu list", "crm gpu list n1"), aliases=("ls", "status")),
    ), answers=("devices",)),
    Verb("gpu.show", Permission.READ, "Show everything that is known of a device", (_DEVICE,), (
        Words(("crm gpu show n1:0000:3b:00.0",)),
    ), answers=("devices",)),
    Verb("gpu.history", Permission.READ, "Show what happened to devices, or to one", (
        _ANY_DEVICE,
        Argument("limit", Kind.INTEGER, "show at most so many (50)", flag="--limit", maximum=10_000),
    ), (
        Words(("crm gpu history", "crm gpu history n1:0000:3b:00.0 --limit 10")),
    ), cost=Cost.LONG, answers=("events",)),
    Verb("gpu.accept", Permission.OPERATE, "Let resources use a device that came later", (
        _DEVICE,
    ), (
        Words(("crm gpu accept n1:0000:3b:00.0",)),
    )),
    Verb("gpu.drain", Permission.OPERATE, "Start nothing new on a device, and let what uses it leave", (_DEVICE,), (
        Words(('crm gpu drain n1:0000:3b:00.0 --reason "to be replaced" --wait',), is_guessed=False),
    )),
    Verb("gpu.clear", Permission.OPERATE, "Let resources use a drained device again", (_DEVICE,), (
        Words(("crm gpu clear n1:0000:3b:00.0",), is_guessed=False),
    )),
    Verb("gpu.forget", Permission.OPERATE, "Forget a device that is missing and will not come back", (_DEVICE,), (
        Words(("crm gpu forget n1:0000:3b:00.0",), is_guessed=False),
    )),
    Verb("gpu.reset", Permission.OPERATE, "Reset a device that nothing uses; once proven well it is used", (
        _DEVICE,
        Argument("reload", Kind.FLAG, "load the driver of its node again, when nothing uses any device there",
                 flag="--reload"),
    ), (
        Words(('crm gpu reset n1:0000:3b:00.0 --reason "xid 119" --wait', "crm gpu reset n1:0000:3b:00.0 --reload"),
              is_guessed=False),
    )),
    Verb("gpu.resume", Permission.OPERATE, "Let policies recover devices again after many went bad at once", (), (
        Words(("crm gpu resume",), is_guessed=False),
    )),
    Verb("gpu.capacity", Permission.READ, "Show which services end when a GPU, a node or a rack fails", (
        Argument("if_fails", Kind.WORD, "1 gpu, 1 node or rack: what fails, one after the other (gpu)",
                 flag="--if-fails"),
        Argument("what", Kind.WORD, "after --if-fails 1: gpu, node or rack", choices=("gpu", "node", "rack")),
    ), (
        Words(("crm gpu capacity --if-fails 1 node", "crm gpu capacity --if-fails 1 gpu",
               "crm gpu capacity --if-fails rack")),
    ), cost=Cost.LONG, answers=("device-capacity",)),
))  # fmt: skip
