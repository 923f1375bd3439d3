"""Ray clusters from outside: find one, place an agent on each node, gather what they collect within a deadline.

Nothing is imported here: agents load this package on every node.
"""
