"""The names of ``kafka.common`` (0.9.5 to 1.4): every value tuple and every error, under one roof.

An alias file: the tuples are made in ``kafka.structs``, the errors and ``check_error`` in
``kafka.errors``.
"""

from __future__ import annotations

from kafka.errors import *  # noqa: F403 - every error of every era
from kafka.structs import *  # noqa: F403 - every tuple of every era
