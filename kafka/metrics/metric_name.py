"""The name of a metric (1.x)."""

from __future__ import annotations

import copy
from typing import Any, Dict, Mapping, Optional


class MetricName:
    """A name within a group, and tags; equality ignores the description.

    Raises ValueError for an empty name or group, TypeError for tags that are not a dict.
    """

    def __init__(
        self,
        name: str,
        group: str,
        description: Optional[str] = None,
        tags: Optional[Mapping[str, Any]] = None,
    ) -> None:
        if not name or not group:
            raise ValueError('a metric needs a name and a group, not %r, %r' % (name, group))
        if tags is not None and not isinstance(tags, dict):
            raise TypeError('the tags of a metric must be a dict, not %r' % (tags,))
        self._name = name
        self._group = group
        self._description = description
        self._tags: Dict[str, Any] = copy.copy(tags) if tags else {}
        self._hash = hash((name, group, tuple(sorted(self._tags.items()))))

    @property
    def name(self) -> str:
        """The name."""
        return self._name

    @property
    def group(self) -> str:
        """The group."""
        return self._group

    @property
    def description(self) -> Optional[str]:
        """A description for users."""
        return self._description

    @property
    def tags(self) -> Dict[str, Any]:
        """A copy of the tags."""
        return copy.copy(self._tags)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            isinstance(other, MetricName)
            and self._name == other._name
            and self._group == other._group
            and self._tags == other._tags
        )

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __repr__(self) -> str:
        return 'MetricName(name=%s, group=%s, description=%s, tags=%s)' % (
            self._name,
            self._group,
            self._description,
            self._tags,
        )
