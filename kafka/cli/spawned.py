"""Installs the import hook in a process that multiprocessing has spawned; run by its path.

Owns that one step. It comes before the process takes over the ``sys.path`` of its parent, which
puts an end to the change made here.
"""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(__file__))))

from kafka.cli.import_hook import install  # found by the line above

install()
