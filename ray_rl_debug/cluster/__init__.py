"""Ray clusters from outside: find one, place an agent on each node, gather what they collect within a deadline.

``capture`` is the door for one snapshot, ``warm_agents`` for looks again and again. Nothing is imported here: agents load this package on every node.
"""
