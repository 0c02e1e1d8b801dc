"""Groups of all types (classic, KIP-848, share, streams) and their offsets."""
