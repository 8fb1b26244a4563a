"""What to do, given the CIB: Pacemaker's decisions as one pure function (docs/design/0005-scheduler.md)."""
