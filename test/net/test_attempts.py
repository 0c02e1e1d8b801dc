"""What is told of the ways to a broker that failed."""

from __future__ import annotations

from kafka.errors import KafkaConnectionError
from kafka.net.attempts import Attempt, given_up, telling


def test_what_was_given_up_is_told_where_nothing_else_is_known_of_the_address():
    refused = Attempt('a:1', '127.0.0.1', 'TCP', 0.1, KafkaConnectionError('refused'), '')
    later = Attempt('a:1', '127.0.0.1', 'TCP', 0.1, given_up(), '')
    other = Attempt('b:1', '127.0.0.2', 'TCP', 0.1, given_up(), '')
    assert telling([refused, later, other]) == [refused, other]
