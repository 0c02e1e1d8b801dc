"""The names of kafka.vendor (1.3 to 3.0), for programs that import them.

Aliases of the standard library; not used by this package.
"""
