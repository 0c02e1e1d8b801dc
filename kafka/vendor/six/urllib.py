"""The names of kafka.vendor.six.moves.urllib (1.3 to 2.x): the package urllib."""

from __future__ import annotations

from urllib import error, parse, request, response, robotparser

__all__ = ['error', 'parse', 'request', 'response', 'robotparser']
