"""Where a secured embedded broker may answer otherwise than a real one, with the reason."""

from __future__ import annotations

from typing import List

from test.differential.deviations import Deviation

DEVIATIONS: List[Deviation] = [
    Deviation(
        r'alice: fetch-1-v[0-3]/ask',
        r'responses\[.*\]\.partitions\[0\]\.error_code',
        '0.11 fails at the older format of what has no records, where another partition has some',
        since=(0, 11),
        until=(0, 11),
        holds=lambda real, ours: real == -1,
    ),
]
