"""The whole cluster in one thread on a virtual clock, with faults and checkers (architecture: decision 7).

What runs here is what runs in production: the same runtime, machines, pacer, queue bridge and PySyncObj. Only the ports
are others: clock, disk, network, agents, fence devices. A run is a function of its seed, equal in every process and
under every PYTHONHASHSEED; nothing here may read a real clock, draw from an unseeded source or iterate a set into a
decision.
"""
