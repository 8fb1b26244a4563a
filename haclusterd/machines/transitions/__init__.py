"""How a DC carries out a plan: from one transition graph, from ready actions to orders and their results.

Here belongs what decides which action is ordered when, and what its end means for the rest of the plan. When a plan is
due, and what becomes of it once its transition has ended, is decided outside of this room; so is what a node does with
an order.
"""
