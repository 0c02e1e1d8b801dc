"""Consumer groups: membership by both group protocols, assignors, committed offsets."""
