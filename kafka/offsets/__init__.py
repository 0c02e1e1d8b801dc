"""Questions about offsets, for consumers, readers and Spark."""
