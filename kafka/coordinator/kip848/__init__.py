"""Membership of a group of KIP-848: the machine, and the driver that speaks for it."""
