"""The tags of replicated classes: the names of the members of unions in the log and in snapshots.

Tags are part of the format. A class may be renamed; its tag stays, since entries and snapshots of every released level
must stay readable (tests/upgrade). A class in a union without a tag is refused when the codec is imported; a released
tag is never given to another class.
"""

from collections.abc import Mapping
from typing import Final

from haclusterd.cib import commands, edits
from haclusterd.model import access, configuration, rules
from haclusterd.wire.schemas import Schemas

COMMANDS: Final[Mapping[type, str]] = {
    commands.FormCluster: "FormCluster",
    commands.ChangeMembers: "ChangeMembers",
    commands.Retire: "Retire",
    commands.RequestCertificate: "RequestCertificate",
    commands.MembersFollowed: "MembersFollowed",
    commands.DcElected: "DcElected",
    commands.Join: "Join",
    commands.PublishWatchdog: "PublishWatchdog",
    commands.PublishLoad: "PublishLoad",
    commands.PublishDevices: "PublishDevices",
    commands.ReleaseDevices: "ReleaseDevices",
    commands.SteerDevice: "SteerDevice",
    commands.BeginRecovery: "BeginRecovery",
    commands.RecordRecovery: "RecordRecovery",
    commands.EndDeviceStorm: "EndDeviceStorm",
    commands.RequestLeave: "RequestLeave",
    commands.Leaving: "Leaving",
    commands.Lost: "Lost",
    commands.RequestFence: "RequestFence",
    commands.IssueOrders: "IssueOrders",
    commands.JudgeRules: "JudgeRules",
    commands.VoidOrders: "VoidOrders",
    commands.RecordResults: "RecordResults",
    commands.IssueFence: "IssueFence",
    commands.RecordFenceAgent: "RecordFenceAgent",
    commands.Fenced: "Fenced",
    commands.RecordFenceFailure: "RecordFenceFailure",
    commands.EndAbandonedFencing: "EndAbandonedFencing",
    commands.RecordProof: "RecordProof",
    commands.ForgetFencings: "ForgetFencings",
    commands.ChangeConfiguration: "ChangeConfiguration",
    commands.StageChange: "StageChange",
    commands.ActivateStaged: "ActivateStaged",
    commands.CleanUp: "CleanUp",
    commands.ForgetHistory: "ForgetHistory",
    commands.SetTransientAttribute: "SetTransientAttribute",
    commands.Forget: "Forget",
    commands.SetTicket: "SetTicket",
    commands.AddApiToken: "AddApiToken",
    commands.RevokeApiToken: "RevokeApiToken",
    commands.RestartResource: "RestartResource",
    commands.EndRestart: "EndRestart",
    commands.RequestLeader: "RequestLeader",
    commands.ReadBarrier: "ReadBarrier",
    commands.RecordAlerts: "RecordAlerts",
    commands.RequestAlertTest: "RequestAlertTest",
    commands.PutSecret: "PutSecret",
    commands.DeleteSecret: "DeleteSecret",
    commands.RotateSecrets: "RotateSecrets",
    commands.ShareSecretKey: "ShareSecretKey",
    commands.NoteSecretShown: "NoteSecretShown",
}
EDITS: Final[Mapping[type, str]] = {
    edits.PutNode: "PutNode",
    edits.PutTemplate: "PutTemplate",
    edits.PutResource: "PutResource",
    edits.PutConstraint: "PutConstraint",
    edits.PutTag: "PutTag",
    edits.PutAlert: "PutAlert",
    edits.PutAccess: "PutAccess",
    edits.PutFencingLevels: "PutFencingLevels",
    edits.PutSets: "PutSets",
    edits.Delete: "Delete",
    edits.Arrange: "Arrange",
}
PARTS: Final[Mapping[type, str]] = {
    configuration.Primitive: "Primitive",
    configuration.Group: "Group",
    configuration.Clone: "Clone",
    configuration.Bundle: "Bundle",
    configuration.Location: "Location",
    configuration.Colocation: "Colocation",
    configuration.Ordering: "Ordering",
    configuration.TicketConstraint: "TicketConstraint",
    access.AclRole: "AclRole",
    access.AclTarget: "AclTarget",
    access.AclGroup: "AclGroup",
    rules.Rule: "Rule",
    rules.AttributeExpression: "AttributeExpression",
    rules.DateExpression: "DateExpression",
    rules.ResourceExpression: "ResourceExpression",
    rules.OperationExpression: "OperationExpression",
}
"""Tags of the classes of a configuration."""

REPLICATED: Final = Schemas(tags={**COMMANDS, **EDITS, **PARTS}, is_sparse=True)
"""The schemas of everything that is replicated."""
