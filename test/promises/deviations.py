"""Differences from kafka-pythons of others that the documents want, or that harm no program.

Each with its reason: {(promise, beginning of the client's release, or of
the brokers' after an @; empty for all): reason}.
"""

from __future__ import annotations

from typing import Dict, Tuple

WANTED: Dict[Tuple[str, str], str] = {
    ('what a closed producer says', '2.0'): 'L 5: IllegalStateError too',
    ('closing without waiting', ''): 'M 14: what is unsent fails',
    ('closing in a callback', ''): 'M 14: the time-out is taken as 0 there',
    ('a future of ones own', '3.0'): 'M 4: completing twice is an AssertionError',
    ('api versions', ''): 'written as given; 2.2 and 3.0 put a release of their list there',
    ('api versions as text', ''): 'written as given; 2.2 and 3.0 put a release of their list there',
    ('nobody is there but a version is given', '3.0'): 'L 5: True only while a connection is open',
    ('topics that nobody may create', ''): 'L 4: asking for it does not create it',
    ('security options that are wrong', ''): 'refused at the first call, each time',
    ('no acknowledgements', ''): 'L 2: offset -1 with acks 0',
    ('a handler of logging', ''): 'theirs blocks on the lock of the handler that it logs to',
    ('a handler of logging that is used during shutdown', ''): 'theirs loses what comes last',
    ('options that are texts of numbers', ''): 'refused by name; theirs fail later or hang',
    ('api version 0 10', '@0.11'): 'theirs sends versions that these brokers do not have',
    ('offsets by an evented client', '2.0@4'): 'brokers of 4.0 have dropped the version',
    ('offsets of an unknown partition', '2.0@4'): 'brokers of 4.0 have dropped the version',
    ('callbacks with bugs', ''): 'errors are shown where logging is not set up',
    ('times of records', '@0.9'): 'M 14: the own time where the answer has none',
    ('unsent records of an aborted transaction', ''): 'theirs writes a marker all the same',
    ('mocks of a producer', ''): 'theirs fail when what was never made is collected',
    ('what to do about errors with codes', '3.0'): 'code 2 is retriable, as for the Java client',
    ('modules that programs import', ''): 'kafka.record is internal',
    ('modules that programs import up to 2 3', ''): 'listeners come with KafkaConsumer',
    ('names of metrics', ''): 'L 5 has the names; those of the network are not there',
    ('metrics after close', ''): 'they stay readable',
    ('an evented client finds its cluster', ''): 'M 12: the metadata is there after construction',
    ('nodes that nobody knows', ''): 'M 12: AssertionError',
    ('waiting calls of an evented client', ''): 'M 12: AssertionError for an unknown node',
    ('requests of a connection', ''): 'one class; it is called ConnectionError (M 10)',
    ('connecting blocks', '2.2'): '2.2 asks brokers of 0.9 what they do not answer',
    ('a future that failed', '2.2'): 'M 14: what is unsent fails',
    ('errbacks', '2.2'): 'M 14: what is unsent fails',
    ('a future that failed', '3.0'): 'M 14: what is unsent fails',
    ('errbacks', '3.0'): 'M 14: what is unsent fails',
    ('closing fails what waits', ''): 'M 10: ConnectionError',
    ('what is known of a cluster', ''): "M 11: str() is 'Cluster(...)'",
}


def reason(promise: str, client: str, release: str) -> str:
    """Return why a difference from a client is wanted, '' for one that nobody has explained."""
    for (name, versions), why in WANTED.items():
        of_client, _, of_brokers = versions.partition('@')
        if name == promise and client.startswith(of_client) and release.startswith(of_brokers):
            return why
    return ''
