"""Programs that a user would start from."""
