"""Groups of all kinds (classic, KIP-848, share, streams) and their offsets."""
