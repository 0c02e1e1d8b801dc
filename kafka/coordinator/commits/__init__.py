"""Committed offsets of a group: OffsetCommit, OffsetFetch, and their error codes."""
