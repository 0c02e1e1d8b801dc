"""Commands of ``python -m kafka``; what each does is its own module's."""

from __future__ import annotations
