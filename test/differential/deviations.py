"""Where the embedded broker answers otherwise than a real one, and why that stays so."""

from __future__ import annotations

import re
from typing import Any, List, NamedTuple, Tuple


class Deviation(NamedTuple):
    """``where`` and ``path`` are regular expressions for the whole of both; ``since`` and ``until``
    the first and last release that it is about."""

    where: str
    path: str
    reason: str
    since: Tuple[int, ...] = ()
    until: Tuple[int, ...] = (99,)

    def explains(self, difference: Any, version: Tuple[int, ...]) -> bool:
        """Tell whether it is about a difference in a release."""
        return bool(
            self.since <= version <= self.until
            and re.fullmatch(self.where, difference.where)
            and re.fullmatch(self.path, difference.path)
        )


DEVIATIONS: List[Deviation] = [
    Deviation(
        r'api versions.*',
        r'api_keys\[(4|5|6|7|52|53|54|56|58|59|62|63|67|70|73|82|83|84|85|86|87)\]',
        'calls between brokers: an embedded cluster has none, and no client sends them',
    ),
]
