"""What the program needs from outside, as Protocols whose docstrings are the contract.

`adapters/` implements them for a real machine, `simulator/hosts/` for a simulated one.
"""
