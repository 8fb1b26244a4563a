"""The plan as a graph, with its reasons, its summary and the invariants that hold for each."""
