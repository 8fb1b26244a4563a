"""Resource agents and fence agents of every class, and the records of their actions.

They run as processes, units and scripts. The machines decide what is to be done.
"""
