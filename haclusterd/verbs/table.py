"""Every verb there is. Each is a row in the file of its family; this only collects them."""

from collections.abc import Mapping

from haclusterd.verbs.acl import ACL
from haclusterd.verbs.alert import ALERT
from haclusterd.verbs.api import API
from haclusterd.verbs.assist import ASSIST
from haclusterd.verbs.cluster import CLUSTER
from haclusterd.verbs.configure import CONFIGURE
from haclusterd.verbs.fencing import FENCING
from haclusterd.verbs.gpu import GPU
from haclusterd.verbs.history import HISTORY
from haclusterd.verbs.maintenance import MAINTENANCE
from haclusterd.verbs.node import NODE
from haclusterd.verbs.resource import RESOURCE
from haclusterd.verbs.root import ROOT
from haclusterd.verbs.sbd import SBD
from haclusterd.verbs.secret import SECRET
from haclusterd.verbs.ticket import TICKET
from haclusterd.verbs.verb import Family, Verb

FAMILIES: tuple[Family, ...] = (
    ROOT, ACL, ALERT, API, ASSIST, CLUSTER, CONFIGURE, FENCING, GPU, HISTORY, MAINTENANCE, NODE, RESOURCE, SBD,
    SECRET, TICKET,
)  # fmt: skip
VERBS: Mapping[str, Verb] = {verb.name: verb for family in FAMILIES for verb in family.verbs}
