"""The names of requests, responses and their fields in 1.x and 2.x, and their modules.

Tables of the names, and the lookup of a name that a module of 1.x had in addition to its
declarations. The classes are made in struct_classes.py.
"""

from __future__ import annotations

import re
import sys
from typing import Any, Dict, List, Tuple

from kafka.internals.lazy_imports import import_late

__all__ = ['HOMES', 'field_names', 'look_up']

#: {module of kafka.protocol: {name of 1.x and 2.x without Request or Response: API key}}.
MODULES: Dict[str, Dict[str, int]] = {
    'admin': {
        'ApiVersion': 18,
        'ListGroups': 16,
        'DescribeGroups': 15,
        'SaslHandShake': 17,
        'SaslAuthenticate': 36,
        'CreateTopics': 19,
        'DeleteTopics': 20,
        'DeleteRecords': 21,
        'DescribeAcls': 29,
        'CreateAcls': 30,
        'DeleteAcls': 31,
        'DescribeConfigs': 32,
        'AlterConfigs': 33,
        'IncrementalAlterConfigs': 44,
        'DescribeLogDirs': 35,
        'AlterReplicaLogDirs': 34,
        'CreatePartitions': 37,
        'DeleteGroups': 42,
        'ElectLeaders': 43,
        'AlterPartitionReassignments': 45,
        'ListPartitionReassignments': 46,
        'DescribeClientQuotas': 48,
    },
    'api_versions': {'ApiVersions': 18},
    'commit': {'OffsetCommit': 8, 'OffsetFetch': 9, 'GroupCoordinator': 10},
    'fetch': {'Fetch': 1, 'OffsetForLeaderEpoch': 23},
    'find_coordinator': {'FindCoordinator': 10},
    'group': {'JoinGroup': 11, 'SyncGroup': 14, 'Heartbeat': 12, 'LeaveGroup': 13},
    'list_offsets': {'ListOffsets': 2},
    'metadata': {'Metadata': 3},
    'offset': {'Offset': 2},
    'produce': {'Produce': 0},
    'sasl': {'SaslHandshake': 17, 'SaslAuthenticate': 36},
    'transaction': {
        'InitProducerId': 22,
        'AddPartitionsToTxn': 24,
        'AddOffsetsToTxn': 25,
        'EndTxn': 26,
        'TxnOffsetCommit': 28,
    },
    # Modules of 2.x with one API each.
    'init_producer_id': {'InitProducerId': 22},
    'add_partitions_to_txn': {'AddPartitionsToTxn': 24},
    'add_offsets_to_txn': {'AddOffsetsToTxn': 25},
    'end_txn': {'EndTxn': 26},
    'txn_offset_commit': {'TxnOffsetCommit': 28},
    'offset_for_leader_epoch': {'OffsetForLeaderEpoch': 23},
    'sasl_handshake': {'SaslHandshake': 17},
    'sasl_authenticate': {'SaslAuthenticate': 36},
}

#: {name without Request or Response: module}.
HOMES = {stem: module for module, stems in reversed(list(MODULES.items())) for stem in stems}

# The names of fields in 1.x and 2.x, by the declared message: those of the message itself, then
# those of the structs inside it, or of one of them, whose name precedes a dot. Other fields have
# the names of the declaration.
_RENAMED = {
    'ProduceRequest': (
        'acks required_acks, timeout_ms timeout, topic_data topics',
        'name topic, partition_data partitions, index partition, records messages',
    ),
    'ProduceResponse': (
        'responses topics',
        (
            'name topic, partition_responses partitions, index partition, base_offset offset,'
            ' log_append_time_ms timestamp'
        ),
    ),
    'FetchRequest': (
        'max_wait_ms max_wait_time',
        'fetch_offset offset, partition_max_bytes max_bytes',
    ),
    'FetchResponse': (
        'responses topics',
        (
            'topic topics, partition_index partition, high_watermark highwater_offset,'
            ' records message_set'
        ),
    ),
    'MetadataRequest': ('', 'name topic'),
    'MetadataResponse': (
        '',
        (
            'name topic, partition_index partition, leader_id leader, replica_nodes replicas,'
            ' isr_nodes isr'
        ),
    ),
    'OffsetCommitRequest': (
        (
            'group_id consumer_group, generation_id_or_member_epoch consumer_group_generation_id,'
            ' member_id consumer_id, retention_time_ms retention_time'
        ),
        (
            'name topic, partition_index partition, committed_offset offset,'
            ' commit_timestamp timestamp, committed_leader_epoch leader_epoch,'
            ' committed_metadata metadata'
        ),
    ),
    'OffsetCommitResponse': ('', 'name topic, partition_index partition'),
    'OffsetFetchRequest': ('group_id consumer_group', 'name topic, partition_indexes partitions'),
    'OffsetFetchResponse': (
        '',
        (
            'name topic, partition_index partition, committed_offset offset,'
            ' committed_leader_epoch leader_epoch'
        ),
    ),
    'FindCoordinatorRequest': ('key coordinator_key, key_type coordinator_type', ''),
    'FindCoordinatorResponse': ('node_id coordinator_id', ''),
    'JoinGroupRequest': (
        (
            'group_id group, session_timeout_ms session_timeout,'
            ' rebalance_timeout_ms rebalance_timeout, protocols group_protocols'
        ),
        'name protocol_name, metadata protocol_metadata',
    ),
    'JoinGroupResponse': (
        'protocol_name group_protocol, leader leader_id',
        'metadata member_metadata',
    ),
    'SyncGroupRequest': (
        'group_id group, assignments group_assignment',
        'assignment member_metadata',
    ),
    'SyncGroupResponse': ('assignment member_assignment', ''),
    'HeartbeatRequest': ('group_id group', ''),
    'LeaveGroupRequest': ('group_id group', ''),
    'DescribeGroupsResponse': (
        '',
        'group_id group, group_state state, protocol_data protocol',
    ),
    'ListGroupsResponse': ('', 'group_id group'),
    'ApiVersionsResponse': ('api_keys api_versions', ''),
    'ListOffsetsRequest': (
        '',
        'name topic, partition_index partition, timestamp time, max_num_offsets max_offsets',
    ),
    'ListOffsetsResponse': (
        '',
        'name topic, partition_index partition, old_style_offsets offsets',
    ),
    'SaslHandshakeResponse': ('mechanisms enabled_mechanisms', ''),
    'SaslAuthenticateRequest': ('auth_bytes sasl_auth_bytes', ''),
    'SaslAuthenticateResponse': ('auth_bytes sasl_auth_bytes', ''),
    'CreateTopicsRequest': (
        'topics create_topic_requests, timeout_ms timeout',
        (
            'name topic, assignments replica_assignment, partition_index partition_id,'
            ' broker_ids replicas, configs.name config_key, configs.value config_value'
        ),
    ),
    'CreateTopicsResponse': ('topics topic_errors', 'name topic'),
    'DeleteTopicsRequest': ('topic_names topics, timeout_ms timeout', ''),
    'DeleteTopicsResponse': ('responses topic_error_codes', 'name topic'),
    'CreatePartitionsRequest': ('topics topic_partitions, timeout_ms timeout', ''),
    'CreatePartitionsResponse': ('results topic_errors', 'name topic'),
    'DescribeAclsRequest': (
        (
            'resource_type_filter resource_type, resource_name_filter resource_name,'
            ' pattern_type_filter resource_pattern_type_filter, principal_filter principal,'
            ' host_filter host'
        ),
        '',
    ),
    'DescribeAclsResponse': ('', 'pattern_type resource_pattern_type'),
    'CreateAclsResponse': ('results creation_responses', ''),
    'DeleteAclsRequest': (
        '',
        (
            'resource_type_filter resource_type, resource_name_filter resource_name,'
            ' pattern_type_filter resource_pattern_type_filter, principal_filter principal,'
            ' host_filter host'
        ),
    ),
    'DeleteAclsResponse': (
        'filter_results filter_responses',
        'pattern_type resource_pattern_type',
    ),
    'DescribeConfigsRequest': ('', 'configuration_keys config_names'),
    'DescribeConfigsResponse': (
        'results resources',
        (
            'configs config_entries, name config_names, value config_value,'
            ' synonyms config_synonyms, synonyms.name config_name, synonyms.source config_source'
        ),
    ),
    'AlterConfigsRequest': ('', 'configs config_entries, name config_name, value config_value'),
    'AlterConfigsResponse': ('responses resources', ''),
    'AddPartitionsToTxnRequest': (
        (
            'v3_and_below_transactional_id transactional_id, v3_and_below_producer_id producer_id,'
            ' v3_and_below_producer_epoch producer_epoch, v3_and_below_topics topics'
        ),
        'name topic',
    ),
    'AddPartitionsToTxnResponse': (
        'results_by_topic_v3_and_below results',
        (
            'name topic, results_by_partition partitions, partition_index partition,'
            ' partition_error_code error_code'
        ),
    ),
    'TxnOffsetCommitRequest': (
        '',
        (
            'name topic, partition_index partition, committed_offset offset,'
            ' committed_leader_epoch leader_epoch, committed_metadata metadata'
        ),
    ),
    'TxnOffsetCommitResponse': ('', 'name topic, partition_index partition'),
}

# Other names in one version of a class; the first is a typing error of 1.x.
_BY_CLASS = {
    ('ProduceResponse_v2', 'throttle_time_ms'): 'thottle_time_ms',
    ('GroupCoordinatorRequest_v0', 'key'): 'consumer_group',
    ('FindCoordinatorRequest_v0', 'key'): 'consumer_group',
}

_NAME = re.compile(r'^([A-Za-z]+?)(Request|Response)(?:_v(\d+))?$')


def _pairs(text: str) -> Dict[str, str]:
    pairs: Dict[str, str] = dict(pair.split() for pair in text.split(',') if pair)
    return pairs


def field_names(declared: str, cls: str) -> Tuple[Dict[str, str], Dict[str, str]]:
    """Return the different names of fields of a message, and of those of the structs in it.

    Arguments: declared: the name of the declared message; cls: of the class of one version.
    """
    outer, inner = map(_pairs, _RENAMED.get(declared, ('', '')))
    for (name, field), called in _BY_CLASS.items():
        if name == cls:
            outer[field] = called
    return outer, inner


def look_up(module: str, name: str) -> Any:
    """Return the list of classes, or the class, that a module of 1.x or 2.x had under a name.

    ``__all__`` is requested by ``from module import *``. Raises AttributeError for any other name.
    """
    if name == '__all__':
        return _all_of(module)
    match = _NAME.match(name)
    key = MODULES.get(module.rpartition('.')[2], {}).get(match.group(1)) if match else None
    if match is None or key is None:
        raise AttributeError('module %r has no attribute %r' % (module, name))
    classes = import_late('kafka.protocol.struct_classes')
    found = classes.versions_of(key, match.group(1), match.group(2))
    if match.group(3) is None:
        return found
    try:
        return found[int(match.group(3))]
    except IndexError as error:
        raise AttributeError('module %r: %s' % (module, error)) from None


def _all_of(module: str) -> List[str]:
    """Return the declarations of a module, and the lists and classes of 1.x and 2.x."""
    names = [name for name in vars(sys.modules[module]) if not name.startswith('_')]
    for stem in MODULES.get(module.rpartition('.')[2], ()):
        for kind in ('Request', 'Response'):
            called = stem + kind
            count = len(look_up(module, called))
            names += [called, *('%s_v%d' % (called, version) for version in range(count))]
    return list(dict.fromkeys(names))
