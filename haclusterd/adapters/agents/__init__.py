"""Resource agents and fence agents of every class, and the records of what they were asked to do.

They run as processes, units and scripts. What is to be done is decided by the machines.
"""
