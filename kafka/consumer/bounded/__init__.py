"""Bounded readers: they read ranges of offsets and end, for programs and for Spark."""
