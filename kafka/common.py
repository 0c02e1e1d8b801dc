"""The names of ``kafka.common`` (0.9.5 to 1.4): all value tuples and all errors in one module.

An alias file: the tuples are defined in ``kafka.structs``, the errors and ``check_error`` in
``kafka.errors``.
"""

from __future__ import annotations

from kafka.errors import *  # noqa: F403 - all errors of all releases
from kafka.structs import *  # noqa: F403 - all tuples of all releases
