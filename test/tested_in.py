"""Where a module is tested, if not in the test of its name; for test_architecture.py."""

from __future__ import annotations

import re

# test/record/test_util.py tests kafka/record/util.py, and so on, but for these:
TESTED_IN = {
    'kafka/record/legacy_run.py': 'test/record/test_legacy_records.py',
    'kafka/net/sasl/__init__.py': 'test/net/sasl/test_mechanism.py',
    'kafka/net/sasl/plain.py': 'test/net/sasl/test_mechanism.py',
    'kafka/net/addresses.py': 'test/test_conn.py',
    'kafka/protocol/abstract.py': 'test/protocol/test_types.py',
    'kafka/protocol/plain_values.py': 'test/protocol/test_versioned.py',
    'kafka/protocol/struct_names.py': 'test/protocol/test_struct_classes.py',
    'kafka/evented/base_coordinator.py': 'test/evented/test_consumer_coordinator.py',
    'kafka/blocking/request_frames.py': 'test/evented/test_broker_connection.py',
    'kafka/__main__.py': 'test/cli/test_run.py',
    'kafka/blocking/base_client.py': 'test/test_client_sending.py',
    'kafka/broker_errors.py': 'test/test_errors.py',
    'kafka/client_errors.py': 'test/test_errors.py',
    'kafka/coordinator/classic/leader.py': 'test/coordinator/classic/test_coordinator.py',
    'kafka/coordinator/classic/heartbeats.py': 'test/coordinator/classic/test_coordinator_lives.py',
    'kafka/config/consumer_table.py': 'test/config/test_tables.py',
    'kafka/config/option.py': 'test/config/test_tables.py',
    'kafka/config/shared_table.py': 'test/config/test_tables.py',
    'kafka/net/arguments.py': 'test/test_conn.py',
    'kafka/metrics/stats/avg.py': 'test/metrics/test_stats.py',
    'kafka/metrics/stats/count.py': 'test/metrics/test_stats.py',
    'kafka/metrics/stats/histogram.py': 'test/metrics/test_stats.py',
    'kafka/metrics/stats/max_stat.py': 'test/metrics/test_stats.py',
    'kafka/metrics/stats/min_stat.py': 'test/metrics/test_stats.py',
    'kafka/metrics/stats/percentile.py': 'test/metrics/test_stats.py',
    'kafka/metrics/stats/percentiles.py': 'test/metrics/test_stats.py',
    'kafka/metrics/stats/rate.py': 'test/metrics/test_stats.py',
    'kafka/metrics/stats/sampled_stat.py': 'test/metrics/test_stats.py',
    'kafka/metrics/stats/total.py': 'test/metrics/test_stats.py',
    'kafka/metrics/stats/sensor.py': 'test/metrics/test_metrics.py',
    'kafka/metrics/clock.py': 'test/metrics/test_metrics.py',
    'kafka/metrics/compound_stat.py': 'test/metrics/test_metrics.py',
    'kafka/metrics/dict_reporter.py': 'test/metrics/test_metrics.py',
    'kafka/metrics/kafka_metric.py': 'test/metrics/test_metrics.py',
    'kafka/metrics/measurable.py': 'test/metrics/test_metrics.py',
    'kafka/metrics/metric_config.py': 'test/metrics/test_metrics.py',
    'kafka/metrics/metric_name.py': 'test/metrics/test_metrics.py',
    'kafka/metrics/metrics_reporter.py': 'test/metrics/test_metrics.py',
    'kafka/metrics/quota.py': 'test/metrics/test_metrics.py',
    'kafka/metrics/stat.py': 'test/metrics/test_metrics.py',
    'kafka/serializer/abstract.py': 'test/test_serializer.py',
    'kafka/serializer/default.py': 'test/test_serializer.py',
    'kafka/net/attempts.py': 'test/net/test_node_connection.py',
    'kafka/net/coordinators.py': 'test/net/test_pool.py',
    'kafka/net/broker_connections.py': 'test/net/test_pool.py',
    'kafka/net/metadata_updater.py': 'test/net/test_pool.py',
    'kafka/net/routes.py': 'test/net/test_pool.py',
    'kafka/net/loop/executor.py': 'test/net/test_resolver.py',
    'kafka/net/loop/selector.py': 'test/net/test_transport.py',
    'kafka/evented/bootstrap.py': 'test/evented/test_client.py',
    'kafka/metrics/network_metrics.py': 'test/evented/test_client.py',
    'kafka/partitioner/abstract.py': 'test/partitioner/test_adapt.py',
    'kafka/producer/deferred.py': 'test/producer/test_sends_from_inside.py',
    'kafka/producer/repair.py': 'test/producer/test_interrupted_sends.py',
    'kafka/producer/many_records.py': 'test/producer/test_record_accumulator.py',
    'kafka/producer/__init__.py': 'test/producer/test_kafka.py',
    'kafka/producer/record_checks.py': 'test/producer/test_kafka.py',
    'kafka/producer/topic_queue.py': 'test/producer/test_record_accumulator.py',
    'kafka/producer/transaction_calls.py': 'test/producer/test_transaction_state.py',
    'kafka/producer/transaction_operations.py': 'test/producer/test_transaction_state.py',
    'kafka/protocol/__init__.py': 'test/protocol/test_legacy.py',
    'kafka/protocol/legacy_messages.py': 'test/protocol/test_legacy_message_sets.py',
    'kafka/protocol/emit_reader.py': 'test/protocol/test_emit.py',
    'kafka/protocol/emit_writer.py': 'test/protocol/test_emit.py',
    'kafka/record/abc.py': 'test/record/test_batch_builders.py',
    'kafka/record/batch_layouts.py': 'test/record/test_batch_decoder.py',
    'kafka/record/legacy_decoder.py': 'test/record/test_legacy_records.py',
    'kafka/record/record.py': 'test/record/test_default_records.py',
    'kafka/record/record_reader.py': 'test/record/test_batch_decoder.py',
    'kafka/vendor/six.py': 'test/test_vendor.py',
}
# What is one subject in kafka/testing is tested together.
_FAMILIES = """
groups/test_classic_group: groups/group_members groups/group_states
groups/test_consumer_groups: groups/consumer_group groups/epoch_group groups/epoch_groups
groups/test_consumer_groups: groups/handover_group
logs/test_produced_batches: logs/log_settings
storage/test_cluster_storage: storage/kept_state storage/kept_offsets storage/kept_groups
handlers/test_consumer_groups: group_checks
handlers/test_cluster_admin: settings/features handlers/cluster handlers/elections
handlers/test_cluster_admin: handlers/log_dirs handlers/reassignments handlers/topic_partitions
handlers/test_cluster_admin: handlers/voters
handlers/test_configs: handlers/alter_configs
handlers/test_fetch: located
handlers/test_groups: groups/registry
handlers/test_share_groups: groups/share_group groups/share_groups
handlers/test_streams_groups: groups/streams_group groups/streams_groups
handlers/test_security_admin: handlers/acls handlers/quotas handlers/tokens handlers/users
handlers/test_topics_admin: topic_checks handlers/create_topics handlers/delete_topics
handlers/test_topics_admin: handlers/partitions
handlers/test_transactions: transactions/coordinator handlers/producers
handlers/test_transactions: handlers/transactional_offsets
"""
for test, family in re.findall('(.+): (.+)', _FAMILIES):
    for name in family.split():
        TESTED_IN['kafka/testing/%s.py' % name] = 'test/testing/%s.py' % test
