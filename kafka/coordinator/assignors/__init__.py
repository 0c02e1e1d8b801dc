"""Assignors: how the leader of a classic group shares partitions among its members."""
