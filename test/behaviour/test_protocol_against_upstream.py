"""The declarations say what Apache Kafka's own description of its messages says.

Compared for each message and each version of both releases: which fields, in which order, their
types, nullability, tags and defaults, and whether a value may be dropped where a version doesn't
carry the field. Names are compared in snake case. Not compared: what upstream says for its brokers
and its Java classes (entity types, map keys, buffers without copies, the texts).
"""

from __future__ import annotations

import re

import pytest

from kafka.protocol import api, consumer_protocol
from kafka.protocol.schema import KINDS, Kind, ListOf, StructMeta
from test.protocol import upstream

BETWEEN_BROKERS = 'sent by brokers and controllers to each other'
SHARE_STATE = 'sent by group coordinators to share coordinators'

LEFT_OUT = {
    'LeaderAndIsr': BETWEEN_BROKERS,
    'StopReplica': BETWEEN_BROKERS,
    'UpdateMetadata': BETWEEN_BROKERS,
    'ControlledShutdown': BETWEEN_BROKERS,
    'Vote': BETWEEN_BROKERS,
    'BeginQuorumEpoch': BETWEEN_BROKERS,
    'EndQuorumEpoch': BETWEEN_BROKERS,
    'AlterPartition': BETWEEN_BROKERS,
    'Envelope': BETWEEN_BROKERS,
    'FetchSnapshot': BETWEEN_BROKERS,
    'BrokerRegistration': BETWEEN_BROKERS,
    'BrokerHeartbeat': BETWEEN_BROKERS,
    'AllocateProducerIds': BETWEEN_BROKERS,
    'ControllerRegistration': BETWEEN_BROKERS,
    'AssignReplicasToDirs': BETWEEN_BROKERS,
    'UpdateRaftVoter': BETWEEN_BROKERS,
    'InitializeShareGroupState': SHARE_STATE,
    'ReadShareGroupState': SHARE_STATE,
    'WriteShareGroupState': SHARE_STATE,
    'DeleteShareGroupState': SHARE_STATE,
    'ReadShareGroupStateSummary': SHARE_STATE,
}

#: Names of 3.9.2 that 4.4.0 changed for the same bytes; the declarations have the new ones.
RENAMED = {
    'ListClientMetricsResources': 'ListConfigResources',
    ('ListClientMetricsResourcesResponse', 'client_metrics_resources'): 'config_resources',
    ('ListClientMetricsResourcesResponse', 'name'): 'resource_name',
    ('TxnOffsetCommitRequest', 'generation_id'): 'generation_id_or_member_epoch',
}

#: (message, field) -> reason, for what is declared otherwise than upstream on purpose.
DEVIATIONS = {}

PROBLEM = upstream.missing()
pytestmark = pytest.mark.skipif(
    PROBLEM is not None, reason='NOT COMPARED WITH UPSTREAM: %s' % PROBLEM
)

CLASSES = {
    cls.__name__: cls
    for cls in (
        *(api.request_class(key) for key in api.ApiKey),
        *(api.response_class(key) for key in api.ApiKey),
        consumer_protocol.ConsumerProtocolSubscription,
        consumer_protocol.ConsumerProtocolAssignment,
    )
}


def snake(name):
    return re.sub(r'([a-z0-9])([A-Z])', r'\1_\2', name).lower()


def our_name(name):
    """Return the name that a message of 3.9.2 has with us."""
    match = re.match(r'^(\w+?)(Request|Response)$', name)
    return RENAMED.get(match.group(1), match.group(1)) + match.group(2) if match else name


def upstream_api_names(release):
    return {
        re.sub('Request$', '', our_name(name)): (name, description)
        for name, description in upstream.descriptions(release).items()
        if description['type'] == 'request' and description['validVersions'] != 'none'
    }


# --- one description for both sides -------------------------------------------------------------


def upstream_default(field):
    kind, default = field['type'], field.get('default')
    if default == 'null':
        return None
    if kind.startswith('[]'):
        return []
    if snake(kind) != kind:
        return 'a new one'
    if default is None:
        name = {'uuid': 'Uuid', 'uint16': 'UInt16', 'uint32': 'UInt32'}.get(kind, kind.capitalize())
        return KINDS[name].zero
    if kind == 'bool':
        return str(default).lower() == 'true'
    return default if kind == 'string' else int(str(default), 0)


def upstream_fields(message, fields, version):
    """Return what a version looks like: a list of tuples, nested for structs."""
    name = message['name']
    common = {struct['name']: struct['fields'] for struct in message.get('commonStructs', ())}
    for field in fields:
        own = snake(field['name'])
        own = RENAMED.get((name, own), own)
        assert field.get('flexibleVersions') is None, 'only the request header has such a field'
        if not upstream.includes(field['versions'], version):
            yield ('absent', own, bool(field.get('ignorable', False)), upstream_default(field))
            continue
        kind = field['type'].replace('[]', '')
        inner = field.get('fields') or common.get(kind)
        tagged = upstream.includes(field.get('taggedVersions'), version)
        yield (
            own,
            ('array of ' if field['type'].startswith('[]') else '')
            + ('struct' if inner is not None else kind),
            upstream.includes(field.get('nullableVersions'), version),
            field['tag'] if tagged else None,
            upstream_default(field),
            None if inner is None else list(upstream_fields(message, inner, version)),
        )


def our_default(field):
    default = field.default
    if isinstance(default, StructMeta) or isinstance(type(default), StructMeta):
        assert default == type(default)(), 'a struct whose default is not its own default'
        return 'a new one'
    if default is None and isinstance(field.type, StructMeta) and field.required:
        return 'a new one'  # has to be given, so the default is never used
    return default


def our_fields(cls, version):
    """Return what a version looks like in the same form."""
    for field in cls.fields:
        if not field.is_on_wire(version):
            yield ('absent', field.name, field.ignorable, our_default(field))
            continue
        kind = field.type.element if isinstance(field.type, ListOf) else field.type
        inner = None if isinstance(kind, Kind) else list(our_fields(kind, version))
        yield (
            field.name,
            ('array of ' if isinstance(field.type, ListOf) else '')
            + ('struct' if inner is not None else kind.name.lower()),
            field.is_nullable(version),
            field.tag,
            our_default(field),
            inner,
        )


def differences(ours, theirs, path):
    """Return what differs, in words; fields that only the other release knows don't count."""
    known = {field[1] for field in theirs if field[0] == 'absent'}
    ours = [field for field in ours if field[0] != 'absent' or field[1] in known]
    absent = [sorted(f for f in side if f[0] == 'absent') for side in (ours, theirs)]
    found = []
    if absent[0] != absent[1]:
        found.append('%s: absent %s, upstream %s' % (path, absent[0], absent[1]))
    # Tagged fields are written in the order of their tags, wherever they are declared.
    ours, theirs = (
        [f for f in side if f[0] != 'absent' and f[3] is None]
        + sorted((f for f in side if f[0] != 'absent' and f[3] is not None), key=lambda f: f[3])
        for side in (ours, theirs)
    )
    if [field[0] for field in ours] != [field[0] for field in theirs]:
        names = [[field[0] for field in side] for side in (ours, theirs)]
        return [*found, '%s: fields %s, upstream %s' % (path, names[0], names[1])]
    for mine, other in zip(ours, theirs):
        where = '%s.%s' % (path, mine[0])
        if mine[:5] != other[:5]:
            found.append('%s: %s, upstream %s' % (where, mine[:5], other[:5]))
        if mine[5] is not None and other[5] is not None:
            found += differences(mine[5], other[5], where)
    return found


# --- the comparison -----------------------------------------------------------------------------


def described(release):
    """Return (upstream's name, our class) for each message that is ours to declare."""
    if PROBLEM:
        return []
    return [
        (name, CLASSES[our_name(name)])
        for name in sorted(upstream.descriptions(release))
        if our_name(name) in CLASSES
    ]


@pytest.mark.parametrize(
    'release, name, cls',
    [(release, *pair) for release in upstream.RELEASES for pair in described(release)],
    ids=lambda value: value if isinstance(value, str) else '',
)
def test_each_version_of_a_message_is_as_described(release, name, cls):
    message = upstream.descriptions(release)[name]
    first, last = upstream.versions(message['validVersions'])
    assert message.get('apiKey') == cls.api_key
    found = []
    for version in range(first, last + 1):
        assert cls.is_flexible(version) == upstream.includes(message['flexibleVersions'], version)
        theirs = list(upstream_fields(message, message['fields'], version))
        found += differences(list(our_fields(cls, version)), theirs, '%s v%d' % (name, version))
    excused = {'%s.%s' % deviation for deviation in DEVIATIONS}
    found = [line for line in found if re.sub(r' v\d+', '', line.split(':')[0]) not in excused]
    assert found == []


def test_the_versions_of_a_message_are_those_of_both_releases():
    for name, cls in CLASSES.items():
        ranges = [
            upstream.versions(upstream.descriptions(release)[other]['validVersions'])
            for release in upstream.RELEASES
            for other, theirs in described(release)
            if theirs is cls
        ]
        covered = {version for first, last in ranges for version in range(first, last + 1)}
        assert covered == set(range(cls.min_version, cls.max_version + 1)), name


def test_every_api_is_declared_or_left_out_for_a_reason():
    described_apis = {}
    for release in upstream.RELEASES:
        described_apis.update(upstream_api_names(release))
    declared = {re.sub('Request$', '', api.request_class(key).__name__) for key in api.ApiKey}
    assert declared & set(LEFT_OUT) == set()
    assert declared | set(LEFT_OUT) == set(described_apis)


def test_what_is_left_out_is_not_served_to_clients():
    """Only calls with a private coordinator are on the brokers' listener in 4.4.0 and left out."""
    for name, (_, description) in upstream_api_names('4.4.0').items():
        if 'broker' not in description['listeners']:
            assert LEFT_OUT[name] == BETWEEN_BROKERS
        else:
            assert LEFT_OUT.get(name) in (None, SHARE_STATE)


def test_api_keys_have_the_names_of_the_messages():
    for key in api.ApiKey:
        name = api.request_class(key).__name__
        assert snake(re.sub('Request$', '', name)).upper() == key.name
        assert api.response_class(key).__name__ == re.sub('Request$', 'Response', name)


def test_the_comparison_sees_each_kind_of_difference():
    """The rule above can fail: for a name, an order, a type, a null, a tag, a default, a drop."""
    base = [('a', 'int32', False, None, 0, None), ('b', 'string', False, None, '', None)]
    assert differences(base, base, '') == []
    assert differences(base, base[::-1], '') != []
    assert differences(base, base[:1], '') != []
    for changed in (
        ('a', 'int64', False, None, 0, None),
        ('a', 'int32', True, None, 0, None),
        ('a', 'int32', False, 1, 0, None),
        ('a', 'int32', False, None, -1, None),
        ('absent', 'a', False, 0),
    ):
        assert differences(base, [changed, base[1]], '') != []
    absent = [('absent', 'c', False, 0)]
    assert differences(base + absent, base, '') == []
    assert differences(base + absent, [*base, ('absent', 'c', True, 0)], '') != []
    struct = [('s', 'struct', False, None, 'a new one', base)]
    other = [('s', 'struct', False, None, 'a new one', base[:1])]
    assert differences(struct, other, '') != []
