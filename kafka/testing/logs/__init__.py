"""The log of a partition, in memory or in files: formats, appending, retention, compaction."""
