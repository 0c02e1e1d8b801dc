"""Membership of a KIP-848 group: the state machine and its driver."""
