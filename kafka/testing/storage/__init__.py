"""The data on disk of a durable cluster: its folder, journal and logs."""
