"""The comparer overlooks nothing: any change of an answer is a difference, hardly one explained.

Answers are those of real releases; one value is changed at a time.
"""

from __future__ import annotations

import copy
import random

import pytest

from kafka.testing.releases import broker_release
from test.differential import recordings
from test.differential.compare import TEXTS, compare, explained
from test.differential.deviations import DEVIATIONS

CHANGES = 1500
MOST_EXPLAINED = 0.02


def places(value, path=()):
    """Yield the paths of all values in an answer."""
    yield path
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from places(inner, (*path, name))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from places(inner, (*path, index))


def changed(value, chance):
    """Return another value."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value + chance.choice((-1, 1, 100))
    if isinstance(value, str):
        return chance.choice((value + 'x', None)) if value else 'x'
    if value is None:
        return chance.choice((0, '', []))
    if isinstance(value, dict):
        name = chance.choice(sorted(value)) if value else 'new'
        return {key: each for key, each in value.items() if key != name} if value else {name: 1}
    if not value:
        return [0]
    index = chance.randrange(len(value))
    return chance.choice((value[:index] + value[index + 1 :], [*value, value[index]]))


def with_change(answer, chance):
    """Return a copy of an answer with one change, and its path."""
    path = chance.choice([each for each in places(answer) if each and each[-1] not in TEXTS])
    mutant = copy.deepcopy(answer)
    holder = mutant
    for step in path[:-1]:
        holder = holder[step]
    holder[path[-1]] = changed(holder[path[-1]], chance)
    return mutant, path


@pytest.mark.parametrize('release', ['0.8.2.2', '2.8.2', '4.4.0'])
def test_every_change_of_an_answer_is_a_difference(release):
    recording = recordings.read(recordings.kept(release))
    names = [name for name, entry in recording.items() if entry.get('answer')]
    chance = random.Random(0)
    version = broker_release(release).version
    count = 0
    for _ in range(CHANGES):
        name = chance.choice(names)
        mutant, path = with_change(recording[name]['answer'], chance)
        found = compare({name: recording[name]}, {name: dict(recording[name], answer=mutant)})
        assert found, '%s: %s' % (name, path)
        count += all(explained(each, version, DEVIATIONS) for each in found)
    assert count <= MOST_EXPLAINED * CHANGES


@pytest.mark.parametrize('release', ['0.8.2.2', '2.8.2', '4.4.0'])
def test_every_other_outcome_is_a_difference(release):
    recording = recordings.read(recordings.kept(release))
    version = broker_release(release).version
    overlooked = []
    for name, entry in recording.items():
        other = 'closed' if entry['outcome'] == 'answer' else 'answer'
        (found,) = compare({name: entry}, {name: dict(entry, outcome=other)})
        if explained(found, version, DEVIATIONS):
            overlooked.append(name)
    assert len(overlooked) <= 3, overlooked
