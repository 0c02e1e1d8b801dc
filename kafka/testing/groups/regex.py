"""Regular expressions of clients, matched in linear time.

All alternatives are followed at the same time and the sets of states are cached, as in RE2J, which
brokers use. With Python's ``re``, an expression such as ``(a+)+b`` would block all brokers of the
process. Called by consumer_group.py; the parser is regex_parser.py. Pure.
"""

from __future__ import annotations

from typing import Dict, FrozenSet, Iterable, List, Optional, Set, Tuple

from kafka.testing.groups.regex_parser import (
    WORD,
    Choice,
    Node,
    One,
    Place,
    Repeat,
    Sequence,
    Test,
    parse,
)

#: Larger expressions are refused; RE2 has a limit of its own.
LARGEST = 20000
#: The limit of the cache of transitions, counted in states of all sets.
MOST_KNOWN = 200000

States = FrozenSet[int]


class Effort:
    """The work that may still be done, in steps; without any left, nothing matches."""

    def __init__(self, steps: int = 3_000_000) -> None:
        self.left = steps


class Pattern:
    """An expression that is matched with whole texts. Raises ValueError if it is invalid."""

    def __init__(self, text: str) -> None:
        self.text = text
        # Per state: a test of a character, a place, or neither; and the next states.
        self._tests: List[Optional[Test]] = [None]
        self._places: List[Optional[str]] = [None]
        self._ways: List[List[int]] = [[]]
        self._parts = 0
        self._start = frozenset([self._add(parse(text), 0)])
        self._known: Dict[Tuple[States, str], Dict[str, States]] = {}
        self._known_states = 0

    def __repr__(self) -> str:
        return '<Pattern %r, %d states>' % (self.text, len(self._ways))

    # ------------------------------------------------------------ states

    def _state(self, ways: List[int], test: Optional[Test] = None, place: str = '') -> int:
        self._tests.append(test)
        self._places.append(place or None)
        self._ways.append(ways)
        return len(self._ways) - 1

    def _add(self, node: Node, then: int) -> int:
        """Add the states of a part that lead to another state; return the first. 0 is the end."""
        self._parts += 1  # repeated parts count each time, also empty ones
        if self._parts > LARGEST:
            raise ValueError('the expression is too large')
        if isinstance(node, One):
            return self._state([then], test=node.test)
        if isinstance(node, Place):
            return self._state([then], place=node.kind)
        if isinstance(node, Sequence):
            for part in reversed(node.parts):
                then = self._add(part, then)
            return then
        if isinstance(node, Choice):
            return self._state([self._add(part, then) for part in node.parts])
        return self._add_repeat(node, then)

    def _add_repeat(self, node: Repeat, then: int) -> int:
        if node.most is None:
            ways = [then]
            first = self._state(ways)
            ways.append(self._add(node.part, first))
        else:
            first = then
            for _ in range(node.most - node.least):
                first = self._state([self._add(node.part, first), then])
        for _ in range(node.least):
            first = self._add(node.part, first)
        return first

    # ------------------------------------------------------------ matching

    def matches(self, text: str, effort: Effort) -> bool:
        """Return True if the expression matches the whole text."""
        if effort.left <= 0:
            return False
        states, before = self._start, ''
        for character in text:
            effort.left -= 1
            known = self._known.get((states, _kind(before)))
            after = known.get(character) if known is not None else None
            if after is None:
                if effort.left <= 0:
                    return False
                after = self._after(states, before, character, effort)
            if not after:
                return False
            states, before = after, character
        return effort.left > 0 and 0 in self._reached(states, before, '', effort)

    def matching(self, texts: Iterable[str], effort: Effort) -> Set[str]:
        """Return the texts that match."""
        return {text for text in texts if self.matches(text, effort)}

    def _after(self, states: States, before: str, character: str, effort: Effort) -> States:
        """Return the states after a character, and cache them."""
        reached = self._reached(states, before, character, effort)
        found: Set[int] = set()
        for state in reached:
            test = self._tests[state]
            if test is not None and test(character):
                found.update(self._ways[state])
        self._known_states += len(states) + len(found) + 1
        if self._known_states > MOST_KNOWN:
            self._known.clear()
            self._known_states = 0
        after = frozenset(found)
        self._known.setdefault((states, _kind(before)), {})[character] = after
        return after

    def _reached(self, states: States, before: str, after: str, effort: Effort) -> Set[int]:
        """Return the states that are reached without a character, given those around it."""
        reached: Set[int] = set()
        waiting = list(states)
        while waiting:
            state = waiting.pop()
            if state in reached:
                continue
            reached.add(state)
            effort.left -= 1
            place = self._places[state]
            if self._tests[state] is None and (place is None or _holds(place, before, after)):
                waiting.extend(self._ways[state])
        return reached


def _kind(character: str) -> str:
    """Return the class of a character that a place depends on: cache key of transitions."""
    return character if character in ('', '\n') else 'w' if character in WORD else ' '


def _holds(place: str, before: str, after: str) -> bool:
    """Return True if a place is between two characters; '' is an end of the text."""
    if place == 'A':
        return before == ''
    if place == 'z':
        return after == ''
    if place == '^':
        return before in ('', '\n')
    if place == '$':
        return after in ('', '\n')
    return ((before in WORD) != (after in WORD)) == (place == 'b')
