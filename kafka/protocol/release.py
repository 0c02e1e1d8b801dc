"""The release of a broker, derived from the API versions that it supports.

Patch releases cannot be distinguished. Programs see it as ``config['api_version']``; this package
only uses it where an API version does not decide.
"""

from __future__ import annotations

from typing import Any, Iterator, Mapping, Tuple

Release = Tuple[int, ...]

# Newest first: release, an API key, and the version of it that the release introduced.
_SIGNS: Tuple[Tuple[Release, int, int], ...] = (
    ((4, 4), 18, 5),
    ((4, 3), 35, 5),
    ((4, 2), 2, 11),
    ((4, 1), 1, 18),
    ((4, 0), 3, 13),
    ((3, 9), 1, 17),
    ((3, 8), 10, 5),
    ((3, 7), 1, 16),
    ((3, 6), 24, 4),
    ((3, 5), 1, 15),
    ((3, 3), 29, 3),
    ((3, 2), 11, 9),
    ((3, 1), 1, 13),
    ((3, 0), 2, 7),
    ((2, 8), 3, 11),
    ((2, 7), 1, 12),
    ((2, 6), 16, 4),
    ((2, 5), 9, 7),
    ((2, 4), 3, 9),
    ((2, 3), 1, 11),
    ((2, 2), 2, 5),
    ((2, 1), 1, 10),
    ((2, 0), 1, 8),
    ((1, 1), 1, 7),
    ((1, 0), 3, 5),
    ((0, 11), 3, 4),
    ((0, 10, 2), 19, 1),
    ((0, 10, 1), 3, 2),
    ((0, 10, 0), 18, 0),
    ((0, 9), 11, 0),
    ((0, 8, 2), 10, 0),
    ((0, 8, 1), 8, 0),
)


def release_of(ranges: Mapping[int, Tuple[int, int]]) -> Release:
    """Return the newest release that a broker can be, as a tuple of numbers.

    Arguments: ranges: lowest and highest supported version, by API key.
    """
    for release, key, version in _SIGNS:
        if ranges.get(key, (0, -1))[1] >= version:
            return release
    return (0, 8, 0)


class ReleaseName(str):
    """A release as text, as in 1.x, such as '0.9', that also behaves like the tuple of 1.3 and
    later.

    It is compared with tuples, iterated and indexed as (0, 9) is.
    """

    numbers: Release

    def __new__(cls, numbers: Release) -> ReleaseName:
        """Create the name of a release; 0.10.0 was called 0.10."""
        text = '0.10' if numbers == (0, 10, 0) else '.'.join(map(str, numbers))
        made = super().__new__(cls, text)
        made.numbers = numbers
        return made

    def __reduce__(self) -> Tuple[Any, ...]:
        return type(self), (self.numbers,)

    def __eq__(self, other: object) -> bool:
        return self.numbers == other if isinstance(other, tuple) else str(self) == other

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__

    def _numbers_of(self, other: Any) -> Any:
        if isinstance(other, (ReleaseName, tuple)):
            return getattr(other, 'numbers', other)
        return tuple(int(part) for part in other.split('.'))

    def __lt__(self, other: Any) -> bool:
        return self.numbers < self._numbers_of(other)  # type: ignore[no-any-return]

    def __le__(self, other: Any) -> bool:
        return self.numbers <= self._numbers_of(other)  # type: ignore[no-any-return]

    def __gt__(self, other: Any) -> bool:
        return self.numbers > self._numbers_of(other)  # type: ignore[no-any-return]

    def __ge__(self, other: Any) -> bool:
        return self.numbers >= self._numbers_of(other)  # type: ignore[no-any-return]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.numbers)

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, index: Any) -> Any:
        return self.numbers[index]
