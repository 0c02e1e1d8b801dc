"""What is told of the ways to a broker that failed."""

from __future__ import annotations

from kafka.errors import KafkaConnectionError
from kafka.net.attempts import Attempt, describe, given_up, telling


def test_what_was_given_up_is_told_where_nothing_else_is_known_of_the_address():
    refused = Attempt('a:1', '127.0.0.1', 'TCP', 0.1, KafkaConnectionError('refused'), '')
    later = Attempt('a:1', '127.0.0.1', 'TCP', 0.1, given_up(), '')
    other = Attempt('b:1', '127.0.0.2', 'TCP', 0.1, given_up(), '')
    assert telling([refused, later, other]) == [refused, other]


def test_tries_that_failed_alike_are_shown_once():
    """The last of them, with how often; what failed otherwise has its place."""
    refused = [Attempt('a:1', '::1', 'TCP', n / 10, KafkaConnectionError('no'), '') for n in (1, 2)]
    other = Attempt('a:1', '127.0.0.1', 'TCP', 0.1, KafkaConnectionError('no'), 'why')
    assert describe([refused[0], other, refused[1]]).split('; ') == [
        'a:1 (127.0.0.1): TCP after 0.1 s: ConnectionError: no',
        'why',
        'a:1 (::1): TCP after 0.2 s: ConnectionError: no (2 times)',
    ]


def test_of_many_the_last_are_shown():
    tries = [Attempt(name, None, 'DNS', 0.1, KafkaConnectionError('no'), '') for name in 'abcabd']
    assert [each[0] for each in describe(tries, 2).split('; ')] == ['b', 'd']
    assert describe([]) == ''
