"""The installation of the import hook in a process that multiprocessing has spawned.

Run by its path. It comes before the process takes over the ``sys.path`` of its parent, which
overrides the change made here.
"""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(__file__))))

from kafka.cli.import_hook import install  # found by the line above

install()
