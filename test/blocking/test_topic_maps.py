"""TopicDict: a dict for all purposes, found under str and bytes."""

from __future__ import annotations

import copy
import pickle
import sys
import threading
import time

import pytest

from kafka.blocking import topic_maps
from kafka.blocking.topic_maps import TopicDict
from kafka.structs import TopicAndPartition

#: The test itself, or a plain dict, compares text with bytes.
without_flag = pytest.mark.skipif(sys.flags.bytes_warning > 0, reason='python -b warns of the test')


@pytest.fixture(autouse=True, params=[False, True], ids=['', 'python -b'])
def bytes_warning(request, monkeypatch):
    """As `python -b` has it, which warns of each comparison of text with bytes, and without."""
    if request.param:
        monkeypatch.setattr(topic_maps, '_WARNS', True)
        monkeypatch.setattr(topic_maps, '_exact', lambda found, key, default: default)
    elif topic_maps._WARNS:
        pytest.skip('this interpreter runs with -b: runs without it have this case')


def test_equals_a_plain_dict_with_the_keys_as_stored():
    plain = {b'a': 1, 'b': 2}
    assert TopicDict(plain) == plain
    assert plain == TopicDict(plain)
    assert list(TopicDict(plain)) == [b'a', 'b']
    assert isinstance(TopicDict(), dict)


@pytest.mark.parametrize(
    'stored, asked',
    [
        (b'topic', 'topic'),
        ('topic', b'topic'),
        ('tópic', 'tópic'.encode()),
        (TopicAndPartition(b't', 3), TopicAndPartition('t', 3)),
        (TopicAndPartition('t', 3), (b't', 3)),
    ],
)
def test_every_access_takes_both_spellings(stored, asked):
    for key in (stored, asked):
        found = TopicDict({stored: 1})
        assert found[key] == 1
        assert key in found
        assert found.get(key) == 1
        assert found.get(key, 5) == 1
        assert found.setdefault(key, 5) == 1
        found[key] = 2
        assert found == {stored: 2}
        found.update({key: 3})
        assert found == {stored: 3}
        assert found | {key: 4} == {stored: 4}
        assert found.pop(key) == 3
        assert found == {}
        found = TopicDict({stored: 1})
        del found[key]
        assert found == {}


def test_missing_key_is_missing_in_both_spellings():
    found = TopicDict({b'a': 1})
    for key in ('b', b'b', TopicAndPartition('a', 0), None, 5, ()):
        assert key not in found
        assert found.get(key) is None
        assert found.pop(key, 7) == 7
        with pytest.raises(KeyError):
            found[key]
        with pytest.raises(KeyError):
            found.pop(key)
        with pytest.raises(KeyError):
            del found[key]
    assert found.setdefault('c', 2) == 2
    assert found == {b'a': 1, 'c': 2}


@without_flag
def test_another_spelling_makes_another_dict():
    assert TopicDict({b'a': 1}) != {'a': 1}


@without_flag
def test_bytes_that_are_no_text_have_one_spelling():
    found = TopicDict({b'\xff': 1})
    assert found[b'\xff'] == 1
    assert '\xff' not in found
    assert '\udcff' not in found


def test_spellings_of_one_topic_never_stand_side_by_side():
    assert TopicDict([(b'a', 1), ('a', 2)]) == {b'a': 2}
    assert TopicDict({b'a': 1}, a=2) == {b'a': 2}
    assert TopicDict.fromkeys([b'a', 'a'], 0) == {b'a': 0}
    found = TopicDict({b'a': 1})
    found |= {'a': 2}
    assert (found, type(found)) == ({b'a': 2}, TopicDict)
    assert {'a': 1} | found == {'a': 2}


@pytest.mark.parametrize(
    'duplicate',
    [
        copy.copy,
        copy.deepcopy,
        lambda found: found.copy(),
        *(
            lambda found, p=p: pickle.loads(pickle.dumps(found, p))
            for p in range(pickle.HIGHEST_PROTOCOL + 1)
        ),
    ],
)
def test_copies_are_of_the_same_kind(duplicate):
    found = TopicDict({b'a': {0: 'zero'}})
    made = duplicate(found)
    assert (type(made), made) == (TopicDict, {b'a': {0: 'zero'}})
    assert made['a'] == {0: 'zero'}
    made['b'] = 1
    assert 'b' not in found


def test_stays_a_dict_in_the_rest():
    found = TopicDict({b'a': 1, b'b': 2})
    assert (len(found), list(found.values()), list(found.items())[0]) == (2, [1, 2], (b'a', 1))
    assert repr(found) == repr({b'a': 1, b'b': 2})
    assert found.popitem() == (b'b', 2)
    found.clear()
    assert not found


def test_a_map_is_copied_while_another_thread_changes_it():
    shared = TopicDict((b'%d' % number, number) for number in range(50))
    ends = threading.Event()

    def change():
        number = 0
        while not ends.is_set():
            number += 1
            shared[b'x%d' % (number % 7)] = number
            shared.pop(b'x%d' % ((number + 3) % 7), None)

    before = sys.getswitchinterval()
    changing = threading.Thread(target=change)
    sys.setswitchinterval(1e-5)
    try:
        changing.start()
        until = time.monotonic() + 1.0
        while time.monotonic() < until:
            assert len(shared.copy()) >= 50
    finally:
        ends.set()
        changing.join(5)
        sys.setswitchinterval(before)
