"""The part of a broker that belongs to a cluster: which brokers are up, and who owns what.

assignment.py   the controller's decision: what moves to which broker; a pure function
ownership.py    `ClusterOwnership`: who owns what, as this broker knows it, answered from memory
pulse.py        the decisions of a member about time: when to beat, whether to trust its memory, whom to bury
member.py       `Member`: registers, beats, follows changes, is the controller if nobody else is
broker_ids.py   ids for brokers that were given none
"""
