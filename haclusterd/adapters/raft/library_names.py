"""The private names of PySyncObj that `store_pysyncobj` overrides or uses; each is checked at start.

A release in which one of them is missing is not the one that was read and tested: the store refuses to start with it.
"""

METHODS = (
    "_SyncObj__onMessageReceived",
    "_SyncObj__sendAppendEntries",
    "_SyncObj__applyLogEntries",
    "_SyncObj__doApplyCommand",
    "_SyncObj__generateRaftTimeout",
    "_SyncObj__onBecomeLeader",
    "_SyncObj__tryLogCompaction",
    "_SyncObj__loadDumpFile",
    "_SyncObj__setCurrentTerm",
    "_SyncObj__setState",
    "_SyncObj__getCurrentLogIndex",
    "_SyncObj__getCurrentLogTerm",
    "_SyncObj__onLeaderChanged",
    "_checkCommandsToApply",
    "_onTick",
)
ATTRIBUTES = (
    "_SyncObj__raftLog",
    "_SyncObj__raftState",
    "_SyncObj__raftLeader",
    "_SyncObj__raftCurrentTerm",
    "_SyncObj__raftCommitIndex",
    "_SyncObj__raftLastApplied",
    "_SyncObj__raftElectionDeadline",
    "_SyncObj__raftMatchIndex",
    "_SyncObj__lastResponseTime",
    "_SyncObj__newAppendEntriesTime",
    "_SyncObj__transferInProgress",
    "_SyncObj__connectedNodes",
    "_SyncObj__otherNodes",
    "_SyncObj__selfNode",
    "_SyncObj__votesCount",
    "_SyncObj__startTime",
    "_SyncObj__numOneSecondDumps",
)
