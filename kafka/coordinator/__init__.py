"""Groups of consumers: membership by both protocols, assignors, stored offsets."""
