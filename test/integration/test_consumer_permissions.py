"""The modern KafkaConsumer on a real broker with every listener: logins, and what is denied.

By ACLs (KIP-11) that come and go while the consumer is there. What a consumer may not do is told by
each call, in time, and it goes on when it may. The same on embedded brokers, to the last call: in
test/behaviour/test_consumer_denied.py.
"""

from __future__ import annotations

import time

import pytest

from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import GroupAuthorizationFailedError, TopicAuthorizationFailedError
from kafka.structs import OffsetAndMetadata, TopicPartition
from test.integration.secured import ALL, FORBIDDEN, GROUP, MALLORY, READ, SINCE, TOPIC, by

pytestmark = [pytest.mark.integration, pytest.mark.real]

SECONDS = 60
#: What calls are given, and how much of it they may take to be refused.
LONG_MS, AT_ONCE = 30_000, 10
MECHANISMS = [by(name) for name in (*dict(SINCE), 'GSSAPI')]
#: A program that polls has its consumer look at metadata and its group so often.
LIVELY = {'metadata_max_age_ms': 500, 'heartbeat_interval_ms': 300, 'session_timeout_ms': 10000}
by_each_protocol = pytest.mark.parametrize(
    'protocol',
    ['classic', pytest.param('consumer', marks=pytest.mark.releases(since='4.0'))],
)
with_acl_api = pytest.mark.releases(since='0.11')


@pytest.fixture(scope='module', autouse=True)
def guarded(secured):
    """Everybody may do everything with topics: what is denied is all that may not be done."""
    secured.set_acls()


@pytest.fixture
def place(secured, new_name):
    """A partition with one record."""
    name = new_name()
    secured.create_topic(name, 1)
    with KafkaProducer(bootstrap_servers=secured.bootstrap) as producer:
        producer.send(name, b'there', partition=0).get(SECONDS)
    return TopicPartition(name, 0)


@pytest.fixture
def make(secured, group):
    """Return a function that makes a consumer of a listener."""
    made = []

    def give(*topics, protocol='SSL', mechanism='', **more):
        told = {'auto_offset_reset': 'earliest', 'group_id': group, **LIVELY, **more}
        told.update(secured.options(protocol, mechanism))
        made.append(KafkaConsumer(*topics, bootstrap_servers=secured.at(protocol), **told))
        return made[-1]

    yield give
    for consumer in made:
        consumer.close(timeout_ms=5000)


@pytest.fixture
def make_as_mallory(secured, make):
    """Return a function that makes a consumer of who may be denied something."""
    certificate, key = secured.others[MALLORY]

    def give(*topics, **more):
        options = {'ssl_certfile': certificate, 'ssl_keyfile': key, **more}
        found = secured.options('SSL')
        found.update(options)
        consumer = KafkaConsumer(
            *topics,
            bootstrap_servers=secured.at('SSL'),
            **{'auto_offset_reset': 'earliest', **LIVELY, **found},
        )
        made.append(consumer)
        return consumer

    made = []
    yield give
    for consumer in made:
        consumer.close(timeout_ms=5000)


def read(consumer, but=()):
    """Poll until a record comes, whatever of some kind is raised; return its value."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        try:
            for records in consumer.poll(200).values():
                return records[0].value
        except but:
            time.sleep(0.05)
    raise AssertionError('nothing came')


def refused(kind, call):
    """Make a call until it is refused: brokers hear of ACLs in their own time; then once more."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        try:
            call()
        except kind:
            break
    began = time.monotonic()
    with pytest.raises(kind) as caught:
        call()
    assert time.monotonic() - began < AT_ONCE
    return caught.value


# ---------------------------------------------------------------- who may


@pytest.mark.parametrize('mechanism', MECHANISMS)
def test_a_member_logs_in_by_each_mechanism(make, place, mechanism):
    consumer = make(place.topic, protocol='SASL_SSL', mechanism=mechanism)
    assert read(consumer) == b'there'
    consumer.commit()
    assert consumer.committed(place) == 1


@by_each_protocol
@pytest.mark.column('TLS')
def test_a_member_shows_its_certificate(make, place, protocol):
    consumer = make(place.topic, group_protocol=protocol)
    assert read(consumer) == b'there'
    consumer.commit()
    assert consumer.committed(place) == 1


# ---------------------------------------------------------------- who may not


@with_acl_api
@pytest.mark.column('TLS')
@pytest.mark.parametrize(
    'operation',
    # 0.10.1 to 0.11 say of topics that may not be seen that there are none (KAFKA-5547).
    [
        pytest.param(ALL, marks=pytest.mark.releases(since='1.0'), id='all'),
        pytest.param(READ, id='read'),
    ],
)
@pytest.mark.parametrize('way', ['subscribe', 'assign', 'group'])
def test_a_topic_that_may_not_be_read(secured, make_as_mallory, group, place, way, operation):
    """Denied all of it, it may not be seen either: the metadata tells; denied READ, the fetch."""
    secured.deny(TOPIC, place.topic, operation=operation)
    consumer = make_as_mallory(group_id=group if way == 'group' else None)
    if way == 'assign':
        consumer.assign([place])
    else:
        consumer.subscribe([place.topic])
    kind = TopicAuthorizationFailedError
    error = refused(kind, lambda: consumer.poll(LONG_MS))
    assert error.args == ({place.topic},)
    secured.grant(TOPIC, place.topic)
    assert read(consumer, kind) == b'there'


@pytest.mark.releases(since='1.0')  # see above
@pytest.mark.column('TLS')
def test_offsets_of_a_topic_that_may_not_be_seen(secured, make_as_mallory, group, place):
    consumer = make_as_mallory(group_id=group)
    consumer.assign([place])
    assert consumer.end_offsets([place]) == {place: 1}
    secured.deny(TOPIC, place.topic)
    kind = TopicAuthorizationFailedError
    refused(kind, lambda: consumer.end_offsets([place]))
    refused(kind, lambda: consumer.commit({place: OffsetAndMetadata(1, '')}))
    refused(kind, lambda: consumer.committed(place))
    secured.grant(TOPIC, place.topic)
    assert read(consumer, kind) == b'there'


@with_acl_api
@by_each_protocol
@pytest.mark.column('TLS')
def test_a_group_that_may_not_be_joined(secured, make_as_mallory, group, place, protocol):
    secured.deny(GROUP, group)
    consumer = make_as_mallory(place.topic, group_id=group, group_protocol=protocol)
    kind = GroupAuthorizationFailedError
    error = refused(kind, lambda: consumer.poll(LONG_MS))
    assert group in str(error)
    refused(kind, lambda: consumer.committed(place))
    refused(kind, lambda: consumer.commit({place: OffsetAndMetadata(1, '')}))
    secured.grant(GROUP, group)
    assert read(consumer, kind) == b'there'
    consumer.commit()
    assert consumer.committed(place) == 1


@with_acl_api
@by_each_protocol
@pytest.mark.column('TLS')
def test_a_group_that_a_member_may_not_use_any_more(
    secured, make_as_mallory, group, place, protocol
):
    consumer = make_as_mallory(place.topic, group_id=group, group_protocol=protocol)
    assert read(consumer) == b'there'
    secured.deny(GROUP, group)
    kind = GroupAuthorizationFailedError
    refused(kind, lambda: consumer.commit({place: OffsetAndMetadata(1, '')}))
    refused(kind, lambda: consumer.poll(LONG_MS))
    secured.grant(GROUP, group)
    deadline = time.monotonic() + SECONDS
    while consumer.committed(place) is None and time.monotonic() < deadline:
        try:
            consumer.poll(200)
            consumer.commit({place: OffsetAndMetadata(1, '')})
        except kind:
            time.sleep(0.05)
    assert consumer.committed(place) == 1


@with_acl_api
@pytest.mark.column('TLS')
def test_offsets_of_a_group_for_who_assigns_itself(secured, make_as_mallory, group, place):
    secured.deny(GROUP, group)
    consumer = make_as_mallory(group_id=group)
    consumer.assign([place])
    kind = GroupAuthorizationFailedError
    refused(kind, lambda: consumer.poll(LONG_MS))
    refused(kind, lambda: consumer.position(place))
    secured.grant(GROUP, group)
    assert read(consumer, kind) == b'there'


@pytest.mark.releases(until='0.10.2')
@pytest.mark.column('TLS')
def test_a_topic_that_may_not_be_read_on_brokers_without_an_api_for_acls(secured, make_as_mallory):
    """They found its ACL at their start. 0.10.1 and later say that there is no such topic."""
    consumer = make_as_mallory(group_id=None)
    consumer.assign([TopicPartition(FORBIDDEN, 0)])
    if secured.release.version < (0, 10, 1):
        refused(TopicAuthorizationFailedError, lambda: consumer.poll(LONG_MS))
    else:
        assert consumer.poll(1000) == {}
