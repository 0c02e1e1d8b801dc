"""Membership of a classic group: the machine, and the driver that speaks for it."""
