"""The messages that administer a cluster, one family a file."""
