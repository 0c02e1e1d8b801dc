"""Assignors: how the leader of a classic group assigns partitions to its members."""
