"""Offsets of a group: commits, look-ups, and what each error code of them leads to."""
