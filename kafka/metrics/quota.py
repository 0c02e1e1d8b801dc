"""A bound of a metric (1.x)."""

from __future__ import annotations


class Quota:
    """An upper or lower bound, see the constructors upper_bound() and lower_bound()."""

    def __init__(self, bound: float, is_upper: bool) -> None:
        self._bound = bound
        self._upper = is_upper

    @staticmethod
    def upper_bound(upper_bound: float) -> Quota:
        """Return a bound that values must not be above."""
        return Quota(upper_bound, True)

    @staticmethod
    def lower_bound(lower_bound: float) -> Quota:
        """Return a bound that values must not be below."""
        return Quota(lower_bound, False)

    def is_upper_bound(self) -> bool:
        """Return True for an upper bound."""
        return self._upper

    @property
    def bound(self) -> float:
        """The bound, which is acceptable itself."""
        return self._bound

    def is_acceptable(self, value: float) -> bool:
        """Return True if a value does not exceed the bound."""
        return value <= self._bound if self._upper else value >= self._bound

    def __hash__(self) -> int:
        return hash((self._bound, self._upper))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Quota) and self._bound == other._bound and self._upper == other._upper
        )

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __repr__(self) -> str:
        return '<Quota %s %s>' % ('at most' if self._upper else 'at least', self._bound)
