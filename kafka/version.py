"""The version of the package; ``setup.py`` reads this file without importing it."""

from __future__ import annotations

__version__ = '0.1.0'
