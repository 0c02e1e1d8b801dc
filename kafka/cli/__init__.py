"""The commands of ``python -m kafka``, a module each."""

from __future__ import annotations
