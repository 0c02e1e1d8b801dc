"""Where a secured embedded broker may answer otherwise than a real one, with the reason."""

from __future__ import annotations

from typing import List

from test.differential.deviations import Deviation

DEVIATIONS: List[Deviation] = []
