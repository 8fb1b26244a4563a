"""What each node is worth for each resource, before anything is assigned.

Locations, colocations, tickets, shutdown locks.
"""
