"""The names of kafka.vendor (1.3 to 3.0): what programs took from there.

Alias files, out of the standard library; nothing here is used by this package.
"""
