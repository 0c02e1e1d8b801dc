"""Counts of values by size (1.x)."""

from __future__ import annotations

import math
from typing import Any, List


class Histogram:
    """The number of values in each bin of a scheme."""

    def __init__(self, bin_scheme: Any) -> None:
        self._hist = [0.0] * bin_scheme.bins
        self._count = 0.0
        self._bin_scheme = bin_scheme

    def record(self, value: float) -> None:
        """Count a value."""
        self._hist[self._bin_scheme.to_bin(value)] += 1.0
        self._count += 1.0

    def value(self, quantile: float) -> float:
        """Return the quantile, 0 to 1, of all values; NaN without values."""
        if self._count == 0.0:
            return math.nan
        seen = 0.0
        for number, count in enumerate(self._hist):
            seen += count
            if seen / self._count > quantile:
                return float(self._bin_scheme.from_bin(number))
        return math.inf

    @property
    def counts(self) -> List[float]:
        """The number of values in each bin."""
        return self._hist

    def clear(self) -> None:
        """Remove all values."""
        self._hist[:] = [0.0] * len(self._hist)
        self._count = 0.0

    def __repr__(self) -> str:
        return '<Histogram of %d values>' % self._count

    def __str__(self) -> str:
        edges = ['%.10f' % self._bin_scheme.from_bin(n) for n in range(1, len(self._hist) - 1)]
        counts = ['%d' % count for count in self._hist]
        bins = zip([str(-math.inf), *edges, str(math.inf)], counts)
        return '{%s}' % ','.join('%s:%s' % each for each in bins)

    class ConstantBinScheme:
        """Bins of equal width; the first is below min_val, the last above max_val."""

        def __init__(self, bins: int, min_val: float, max_val: float) -> None:
            if bins < 2:
                raise ValueError('there must be at least 2 bins, got %r' % (bins,))
            self._min = float(min_val)
            self._max = float(max_val)
            self._bins = int(bins)
            self._bucket_width = (self._max - self._min) / (bins - 2) if bins > 2 else math.inf

        @property
        def bins(self) -> int:
            """The number of bins."""
            return self._bins

        def from_bin(self, b: int) -> float:
            """Return the lower edge of a bin."""
            if b == 0:
                return -math.inf
            if b == self._bins - 1:
                return math.inf
            return self._min + (b - 1) * self._bucket_width

        def to_bin(self, x: float) -> int:
            """Return the bin of a value."""
            if x < self._min:
                return 0
            if x > self._max:
                return self._bins - 1
            return min(int((x - self._min) / self._bucket_width) + 1, self._bins - 1)

    class LinearBinScheme:
        """Bins from 0 to max_val, whose width increases linearly."""

        def __init__(self, num_bins: int, max_val: float) -> None:
            if num_bins < 2:
                raise ValueError('there must be at least 2 bins, got %r' % (num_bins,))
            self._bins = int(num_bins)
            self._max = float(max_val)
            self._scale = self._max / (num_bins * (num_bins - 1) / 2)

        @property
        def bins(self) -> int:
            """The number of bins."""
            return self._bins

        def from_bin(self, b: int) -> float:
            """Return the lower edge of a bin."""
            if b == self._bins - 1:
                return math.inf
            return self._scale * (b * (b + 1.0)) / 2.0

        def to_bin(self, x: float) -> int:
            """Return the bin of a value. Raises ValueError for a negative one."""
            if x < 0.0:
                raise ValueError('values must not be negative, got %r' % (x,))
            if x > self._max:
                return self._bins - 1
            return int(-0.5 + 0.5 * math.sqrt(1.0 + 8.0 * x / self._scale))
