"""Ranges of offsets: readers that end, for programs and for Spark."""
