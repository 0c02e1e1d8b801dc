"""Lookups of offsets, for consumers, bounded readers and Spark."""
