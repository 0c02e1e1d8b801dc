"""Every consumer, producer, client, connection and metrics name of 1.2.1 is there, and its calls.

The lists are those of the 1.2.1 document, class by class, then of the modules that programs of its
time imported from; what later releases added to them follows. How the
names of 0.9.5 and these are told apart is at the end.
"""

from __future__ import annotations

import math
import warnings

import pytest

import kafka
from kafka import config
from kafka.testing import Cluster
from test.config.test_option_tables import OF_1_2
from test.documented_calls import check_call, find

SIGNATURES = """
kafka.KafkaConsumer(*topics, **configs)
kafka.KafkaConsumer.assign(partitions)
kafka.KafkaConsumer.assignment()
kafka.KafkaConsumer.close()
kafka.KafkaConsumer.commit(offsets=None)
kafka.KafkaConsumer.commit_async(offsets=None, callback=None)
kafka.KafkaConsumer.committed(partition)
kafka.KafkaConsumer.highwater(partition)
kafka.KafkaConsumer.partitions_for_topic(topic)
kafka.KafkaConsumer.pause(*partitions)
kafka.KafkaConsumer.paused()
kafka.KafkaConsumer.poll(timeout_ms=0)
kafka.KafkaConsumer.position(partition)
kafka.KafkaConsumer.resume(*partitions)
kafka.KafkaConsumer.seek(partition, offset)
kafka.KafkaConsumer.seek_to_beginning(*partitions)
kafka.KafkaConsumer.seek_to_end(*partitions)
kafka.KafkaConsumer.subscribe(topics=(), pattern=None, listener=None)
kafka.KafkaConsumer.subscription()
kafka.KafkaConsumer.topics()
kafka.KafkaConsumer.unsubscribe()
kafka.consumer.subscription_state.SubscriptionState(offset_reset_strategy='earliest')
kafka.consumer.subscription_state.SubscriptionState.all_consumed_offsets()
kafka.consumer.subscription_state.SubscriptionState.assigned_partitions()
kafka.consumer.subscription_state.SubscriptionState.assign_from_subscribed(partitions)
kafka.consumer.subscription_state.SubscriptionState.assign_from_user(partitions)
kafka.consumer.subscription_state.SubscriptionState.change_subscription(topics)
kafka.consumer.subscription_state.SubscriptionState.fetchable_partitions()
kafka.consumer.subscription_state.SubscriptionState.group_subscribe(topics)
kafka.consumer.subscription_state.SubscriptionState.group_subscription()
kafka.consumer.subscription_state.SubscriptionState.has_all_fetch_positions()
kafka.consumer.subscription_state.SubscriptionState.has_default_offset_reset_policy()
kafka.consumer.subscription_state.SubscriptionState.is_assigned(partition)
kafka.consumer.subscription_state.SubscriptionState.is_fetchable(partition)
kafka.consumer.subscription_state.SubscriptionState.is_offset_reset_needed(partition)
kafka.consumer.subscription_state.SubscriptionState.is_paused(partition)
kafka.consumer.subscription_state.SubscriptionState.mark_for_reassignment()
kafka.consumer.subscription_state.SubscriptionState.missing_fetch_positions()
kafka.consumer.subscription_state.SubscriptionState.need_offset_reset(\
partition, strategy=None)
kafka.consumer.subscription_state.SubscriptionState.partitions_auto_assigned()
kafka.consumer.subscription_state.SubscriptionState.pause(partition)
kafka.consumer.subscription_state.SubscriptionState.paused_partitions()
kafka.consumer.subscription_state.SubscriptionState.resume(partition)
kafka.consumer.subscription_state.SubscriptionState.seek(partition, offset)
kafka.consumer.subscription_state.SubscriptionState.subscribe(\
topics=(), pattern=None, listener=None)
kafka.consumer.subscription_state.SubscriptionState.unsubscribe()
kafka.consumer.subscription_state.ConsumerRebalanceListener()
kafka.consumer.subscription_state.ConsumerRebalanceListener.on_partitions_assigned(assigned)
kafka.consumer.subscription_state.ConsumerRebalanceListener.on_partitions_revoked(revoked)
kafka.coordinator.assignors.abstract.AbstractPartitionAssignor.assign(cluster, members)
kafka.coordinator.assignors.abstract.AbstractPartitionAssignor.metadata(topics)
kafka.KafkaProducer(**configs)
kafka.KafkaProducer.close(timeout=None)
kafka.KafkaProducer.flush(timeout=None)
kafka.KafkaProducer.partitions_for(topic)
kafka.KafkaProducer.send(topic, value=None, key=None)
kafka.client.KafkaClient(**configs)
kafka.client.KafkaClient.add_topic(topic)
kafka.client.KafkaClient.check_version(node_id=None, timeout=2, strict=False)
kafka.client.KafkaClient.close(node_id=None)
kafka.client.KafkaClient.connected(node_id)
kafka.client.KafkaClient.connection_delay(node_id)
kafka.client.KafkaClient.in_flight_request_count(node_id=None)
kafka.client.KafkaClient.is_disconnected(node_id)
kafka.client.KafkaClient.is_ready(node_id)
kafka.client.KafkaClient.least_loaded_node()
kafka.client.KafkaClient.poll(timeout_ms=None, future=None, sleep=True)
kafka.client.KafkaClient.ready(node_id)
kafka.client.KafkaClient.schedule(task, at)
kafka.client.KafkaClient.send(node_id, request)
kafka.client.KafkaClient.set_topics(topics)
kafka.client.KafkaClient.unschedule(task)
kafka.client.KafkaClient.wakeup()
kafka.BrokerConnection(host, port, afi, **configs)
kafka.BrokerConnection.blacked_out()
kafka.BrokerConnection.can_send_more()
kafka.BrokerConnection.check_version(timeout=2, strict=False)
kafka.BrokerConnection.close(error=None)
kafka.BrokerConnection.connect()
kafka.BrokerConnection.connected()
kafka.BrokerConnection.connecting()
kafka.BrokerConnection.disconnected()
kafka.BrokerConnection.recv()
kafka.BrokerConnection.send(request, expect_response=True)
kafka.conn.InFlightRequest(request, response_type, correlation_id, future, timestamp)
kafka.conn.collect_hosts(hosts, randomize=True)
kafka.conn.get_ip_port_afi(host_and_port_str)
kafka.evented.client.DelayedTaskQueue()
kafka.evented.client.DelayedTaskQueue.add(task, at)
kafka.evented.client.DelayedTaskQueue.next_at()
kafka.evented.client.DelayedTaskQueue.pop_ready()
kafka.evented.client.DelayedTaskQueue.remove(task)
kafka.cluster.ClusterMetadata(**configs)
kafka.cluster.ClusterMetadata.add_group_coordinator(group, response)
kafka.cluster.ClusterMetadata.add_listener(listener)
kafka.cluster.ClusterMetadata.available_partitions_for_topic(topic)
kafka.cluster.ClusterMetadata.broker_metadata(broker_id)
kafka.cluster.ClusterMetadata.brokers()
kafka.cluster.ClusterMetadata.coordinator_for_group(group)
kafka.cluster.ClusterMetadata.failed_update(exception)
kafka.cluster.ClusterMetadata.leader_for_partition(partition)
kafka.cluster.ClusterMetadata.partitions_for_broker(broker_id)
kafka.cluster.ClusterMetadata.partitions_for_topic(topic)
kafka.cluster.ClusterMetadata.remove_listener(listener)
kafka.cluster.ClusterMetadata.request_update()
kafka.cluster.ClusterMetadata.topics()
kafka.cluster.ClusterMetadata.ttl()
kafka.cluster.ClusterMetadata.update_metadata(metadata)
kafka.future.Future()
kafka.future.Future.add_both(f, *args, **kwargs)
kafka.future.Future.add_callback(f, *args, **kwargs)
kafka.future.Future.add_errback(f, *args, **kwargs)
kafka.future.Future.chain(other)
kafka.future.Future.failed()
kafka.future.Future.failure(e)
kafka.future.Future.retriable()
kafka.future.Future.succeeded()
kafka.future.Future.success(value)
kafka.partitioner.default.DefaultPartitioner()
kafka.producer.buffer.SimpleBufferPool(memory, poolable_size)
kafka.producer.buffer.SimpleBufferPool.allocate(size, max_time_to_block_ms)
kafka.producer.buffer.SimpleBufferPool.deallocate(buf)
kafka.producer.buffer.SimpleBufferPool.queued()
kafka.producer.future.FutureProduceResult(topic_partition)
kafka.producer.future.FutureProduceResult.wait(timeout=None)
kafka.producer.future.FutureRecordMetadata.get(timeout=None)
kafka.metrics.AnonMeasurable(measure_fn)
kafka.metrics.DictReporter(prefix='')
kafka.metrics.DictReporter.snapshot()
kafka.metrics.KafkaMetric(metric_name, measurable, config)
kafka.metrics.KafkaMetric.value(time_ms=None)
kafka.metrics.MetricConfig(quota=None, samples=2, event_window=__import__('sys').maxsize, \
time_window_ms=30000, tags=None)
kafka.metrics.MetricName(name, group, description=None, tags=None)
kafka.metrics.Metrics(default_config=None, reporters=None, enable_expiration=False)
kafka.metrics.Metrics.add_metric(metric_name, measurable, config=None)
kafka.metrics.Metrics.add_reporter(reporter)
kafka.metrics.Metrics.close()
kafka.metrics.Metrics.get_sensor(name)
kafka.metrics.Metrics.metric_name(name, group, description='', tags=None)
kafka.metrics.Metrics.register_metric(metric)
kafka.metrics.Metrics.remove_metric(metric_name)
kafka.metrics.Metrics.remove_sensor(name)
kafka.metrics.Metrics.sensor(name, config=None, \
inactive_sensor_expiration_time_seconds=__import__('sys').maxsize, parents=None)
kafka.metrics.NamedMeasurable(metric_name, measurable_stat)
kafka.metrics.Quota.is_acceptable(value)
kafka.metrics.Quota.is_upper_bound()
kafka.metrics.Quota.lower_bound(lower_bound)
kafka.metrics.Quota.upper_bound(upper_bound)
kafka.metrics.measurable.AbstractMeasurable.measure(config, now)
kafka.metrics.metrics_reporter.AbstractMetricsReporter.close()
kafka.metrics.metrics_reporter.AbstractMetricsReporter.configure(configs)
kafka.metrics.metrics_reporter.AbstractMetricsReporter.init(metrics)
kafka.metrics.metrics_reporter.AbstractMetricsReporter.metric_change(metric)
kafka.metrics.metrics_reporter.AbstractMetricsReporter.metric_removal(metric)
kafka.metrics.stats.Avg()
kafka.metrics.stats.Count()
kafka.metrics.stats.Histogram(bin_scheme)
kafka.metrics.stats.Histogram.ConstantBinScheme(bins, min_val, max_val)
kafka.metrics.stats.Histogram.LinearBinScheme(num_bins, max_val)
kafka.metrics.stats.Histogram.record(value)
kafka.metrics.stats.Histogram.value(quantile)
kafka.metrics.stats.Max()
kafka.metrics.stats.Min()
kafka.metrics.stats.Percentile(metric_name, percentile)
kafka.metrics.stats.Percentiles(size_in_bytes, bucketing, max_val, min_val=0.0, percentiles=None)
kafka.metrics.stats.Rate(time_unit=3, sampled_stat=None)
kafka.metrics.stats.Sensor.add(metric_name, stat, config=None)
kafka.metrics.stats.Sensor.add_compound(compound_stat, config=None)
kafka.metrics.stats.Sensor.has_expired()
kafka.metrics.stats.Sensor.record(value=1.0, time_ms=None)
kafka.metrics.stats.Total(value=0.0)
kafka.metrics.stats.sampled_stat.AbstractSampledStat.measure(config, now)
kafka.metrics.stats.sampled_stat.AbstractSampledStat.record(config, value, time_ms)
kafka.util.WeakMethod(bound_method)
""".split('\n')[1:-1]  # fmt: skip

# What releases from 1.3 to 2.3 added to the same classes.
LATER = """
kafka.KafkaConsumer.beginning_offsets(partitions)
kafka.KafkaConsumer.bootstrap(timeout_ms=None, refresh=False)
kafka.KafkaConsumer.bootstrap_connected()
kafka.KafkaConsumer.close(autocommit=True, timeout_ms=None)
kafka.KafkaConsumer.commit(offsets=None, timeout_ms=None)
kafka.KafkaConsumer.committed(partition, metadata=False, timeout_ms=None)
kafka.KafkaConsumer.end_offsets(partitions)
kafka.KafkaConsumer.group_metadata()
kafka.KafkaConsumer.metrics(raw=False)
kafka.KafkaConsumer.offsets_for_times(timestamps)
kafka.KafkaConsumer.poll(timeout_ms=0, max_records=None, update_offsets=True)
kafka.KafkaConsumer.position(partition, timeout_ms=None)
kafka.ConsumerRebalanceListener.on_partitions_lost(lost)
kafka.KafkaProducer.bootstrap_connected()
kafka.KafkaProducer.close(timeout=None, null_logger=False)
kafka.KafkaProducer.metrics(raw=False)
kafka.KafkaProducer.init_transactions()
kafka.KafkaProducer.begin_transaction()
kafka.KafkaProducer.commit_transaction()
kafka.KafkaProducer.abort_transaction()
kafka.KafkaProducer.max_usable_produce_magic(api_version)
kafka.client.KafkaClient.api_version(request_class, max_version=None)
kafka.client.KafkaClient.await_ready(node_id, timeout_ms=30000)
kafka.client.KafkaClient.bootstrap_connected()
kafka.client.KafkaClient.get_api_versions()
kafka.client.KafkaClient.is_ready(node_id, metadata_priority=True)
kafka.client.KafkaClient.maybe_connect(node_id, wakeup=True)
kafka.client.KafkaClient.ready(node_id, metadata_priority=True)
kafka.client.KafkaClient.send_and_receive(node_id, request)
kafka.BrokerConnection.connect_blocking(timeout=float('inf'))
kafka.BrokerConnection.connection_delay()
kafka.BrokerConnection.get_api_versions()
kafka.BrokerConnection.requests_timed_out()
kafka.BrokerConnection.send_pending_requests()
""".split('\n')[1:-1]  # fmt: skip

# Where the same thing is found too, as programs of 1.x to 3.x import it.
OTHER_PATHS = {
    'kafka.KafkaClient': 'kafka.client.KafkaClient',
    'kafka.evented.client.KafkaClient': 'kafka.client.KafkaClient',
    'kafka.evented.client.BrokerConnection': 'kafka.BrokerConnection',
    'kafka.conn.BrokerConnection': 'kafka.BrokerConnection',
    'kafka.consumer.KafkaConsumer': 'kafka.KafkaConsumer',
    'kafka.consumer.group.KafkaConsumer': 'kafka.KafkaConsumer',
    'kafka.ConsumerRebalanceListener': (
        'kafka.consumer.subscription_state.ConsumerRebalanceListener'
    ),
    'kafka.producer.KafkaProducer': 'kafka.KafkaProducer',
    'kafka.producer.kafka.KafkaProducer': 'kafka.KafkaProducer',
    'kafka.conn.ConnectionStates': 'kafka.evented.broker_connection.ConnectionStates',
    'kafka.client.SimpleClient': 'kafka.SimpleClient',
    'kafka.common.TopicPartition': 'kafka.TopicPartition',
    'kafka.structs.TopicPartition': 'kafka.TopicPartition',
    'kafka.structs.OffsetAndMetadata': 'kafka.OffsetAndMetadata',
    'kafka.structs.ConsumerGroupMetadata': 'kafka.ConsumerGroupMetadata',
    'kafka.structs.TopicPartitionReplica': 'kafka.TopicPartitionReplica',
    'kafka.partitioner.DefaultPartitioner': 'kafka.partitioner.default.DefaultPartitioner',
    'kafka.partitioner.StickyPartitioner': 'kafka.partitioner.sticky.StickyPartitioner',
    'kafka.partitioner.Partitioner': 'kafka.partitioner.abstract.Partitioner',
    'kafka.partitioner.murmur2': 'kafka.partitioner.hashed.murmur2',
    'kafka.partitioner.default.murmur2': 'kafka.partitioner.hashed.murmur2',
    'kafka.serializer.abstract.Serializer': 'kafka.Serializer',
    'kafka.serializer.abstract.Deserializer': 'kafka.Deserializer',
    'kafka.oauth.abstract.AbstractTokenProvider': 'kafka.sasl.oauth.AbstractTokenProvider',
    'kafka.oauth.AbstractTokenProvider': 'kafka.sasl.oauth.AbstractTokenProvider',
    'kafka.metrics.metrics.Metrics': 'kafka.metrics.Metrics',
    'kafka.metrics.kafka_metric.KafkaMetric': 'kafka.metrics.KafkaMetric',
    'kafka.metrics.metric_config.MetricConfig': 'kafka.metrics.MetricConfig',
    'kafka.metrics.metric_name.MetricName': 'kafka.metrics.MetricName',
    'kafka.metrics.dict_reporter.DictReporter': 'kafka.metrics.DictReporter',
    'kafka.metrics.measurable.AnonMeasurable': 'kafka.metrics.AnonMeasurable',
    'kafka.metrics.compound_stat.NamedMeasurable': 'kafka.metrics.NamedMeasurable',
    'kafka.metrics.quota.Quota': 'kafka.metrics.Quota',
    'kafka.metrics.stats.sensor.Sensor': 'kafka.metrics.stats.Sensor',
    'kafka.metrics.stats.percentiles.Percentiles': 'kafka.metrics.stats.Percentiles',
    'kafka.errors.ConnectionError': 'kafka.errors.KafkaConnectionError',
    'kafka.common.NodeNotReadyError': 'kafka.errors.NodeNotReadyError',
    'kafka.common.TooManyInFlightRequests': 'kafka.errors.TooManyInFlightRequests',
}

# Modules that programs only import, and what they expect in them.
MEMBERS = {
    'kafka.conn': 'DEFAULT_SOCKET_TIMEOUT_SECONDS DEFAULT_KAFKA_PORT',
    'kafka.metrics.stat': 'AbstractStat',
    'kafka.metrics.measurable_stat': 'AbstractMeasurableStat',
    'kafka.metrics.compound_stat': 'AbstractCompoundStat',
    'kafka.metrics.stats.percentiles': 'BucketSizing',
    'kafka.metrics.stats.rate': 'TimeUnit',
    'kafka.metrics.stats.sampled_stat': 'AbstractSampledStat',
    'kafka.consumer.subscription_state': 'SubscriptionState TopicPartitionState',
    'kafka.coordinator.assignors.range': 'RangePartitionAssignor',
    'kafka.coordinator.assignors.roundrobin': 'RoundRobinPartitionAssignor',
    'kafka.coordinator.assignors.sticky.sticky_assignor': 'StickyPartitionAssignor',
    'kafka.coordinator.assignors.cooperative_sticky': 'CooperativeStickyAssignor',
    'kafka.coordinator.protocol': (
        'ConsumerProtocol ConsumerProtocolMemberMetadata ConsumerProtocolMemberAssignment'
    ),
    'kafka.producer.record_accumulator': 'RecordAccumulator ProducerBatch',
    'kafka.producer.sender': 'Sender',
    'kafka.producer.future': 'FutureProduceResult FutureRecordMetadata RecordMetadata',
    'kafka.producer.transaction_manager': 'TransactionManager',
    'kafka.protocol.abstract': 'AbstractType',
    'kafka.protocol.types': 'Int8 Int16 Int32 Int64 String Bytes Array Schema',
    'kafka.protocol.struct': 'Struct',
    'kafka.protocol.api': 'RequestHeader Request Response',
    'kafka.protocol.message': 'Message MessageSet PartialMessage',
    'kafka.sasl': 'register_sasl_mechanism get_sasl_mechanism',
    'kafka.sasl.abc': 'SaslMechanism',
    'kafka.protocol.init_producer_id': 'InitProducerIdRequest_v0',
    'kafka.protocol.add_partitions_to_txn': 'AddPartitionsToTxnRequest_v0',
    'kafka.protocol.add_offsets_to_txn': 'AddOffsetsToTxnRequest_v0',
    'kafka.protocol.end_txn': 'EndTxnRequest_v0',
    'kafka.protocol.txn_offset_commit': 'TxnOffsetCommitRequest_v0',
    'kafka.protocol.offset_for_leader_epoch': 'OffsetForLeaderEpochRequest_v0',
    'kafka.protocol.sasl_handshake': 'SaslHandshakeRequest_v0',
    'kafka.protocol.sasl_authenticate': 'SaslAuthenticateRequest_v0',
    'kafka.protocol.find_coordinator': 'FindCoordinatorRequest FindCoordinatorResponse',
    'kafka.protocol.list_offsets': 'ListOffsetsRequest ListOffsetsResponse',
    'kafka.protocol.api_versions': 'ApiVersionsRequest ApiVersionsResponse',
    'kafka.protocol.parser': 'KafkaProtocol',
    'kafka.record': 'MemoryRecords',
}

# Defaults that the documents of 1.2.1 give; where eras differ, those of the later ones, which are
# longer or safer. How the default client id is written, each class says itself.
DEFAULTS = {
    'kafka.BrokerConnection': {**OF_1_2[config.CONNECTION], 'request_timeout_ms': 30000},
    'kafka.evented.client.KafkaClient': {**OF_1_2[config.CLIENT], 'request_timeout_ms': 30000},
    'kafka.KafkaProducer': {**OF_1_2[config.PRODUCER], 'acks': -1, 'retries': math.inf},
    'kafka.KafkaConsumer': {
        **OF_1_2[config.CONSUMER],
        'consumer_timeout_ms': math.inf,
        'group_id': None,
        'request_timeout_ms': 30000,
        'session_timeout_ms': 45000,
    },
}


@pytest.mark.parametrize('line', SIGNATURES + LATER)
def test_a_call_as_the_documents_have_it_fits(line):
    check_call(line)


@pytest.mark.parametrize('path', sorted(OTHER_PATHS))
def test_the_other_paths_lead_to_the_same_object(path):
    assert find(path) is find(OTHER_PATHS[path])


@pytest.mark.parametrize('module', sorted(MEMBERS))
def test_a_module_has_what_programs_import_from_it(module):
    for name in MEMBERS[module].split():
        assert find('%s.%s' % (module, name)) is not None


@pytest.mark.parametrize('path', sorted(DEFAULTS))
def test_defaults(path):
    found = find(path).DEFAULT_CONFIG
    assert {name: found[name] for name in DEFAULTS[path]} == DEFAULTS[path]
    with pytest.raises(AttributeError):
        find(path).DEFAULT_CONFIGS  # noqa: B018 - the look-up is the test


def test_a_star_import_brings_the_names_of_1_2():
    brought = {}
    exec('from kafka import *', brought)
    names = """KafkaConsumer KafkaProducer KafkaClient BrokerConnection SimpleClient SimpleProducer
        KeyedProducer RoundRobinPartitioner HashedPartitioner create_message create_gzip_message
        create_snappy_message SimpleConsumer MultiProcessConsumer"""
    assert set(names.split()) <= set(brought)


# ------------------------------------------------------------ both eras in one process


@pytest.fixture
def cluster():
    with Cluster(version='2.8', topics={'topic': 1}) as running:
        yield running


def test_a_client_is_told_by_its_call(cluster):
    """A place or hosts= is 0.9.5's, keywords without hosts the evented one's."""
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        old = [kafka.KafkaClient(cluster.bootstrap), kafka.KafkaClient(hosts=cluster.bootstrap)]
        evented = [
            kafka.KafkaClient(bootstrap_servers=cluster.bootstrap),
            kafka.evented.client.KafkaClient(bootstrap_servers=[cluster.bootstrap], client_id='me'),
        ]
    try:
        assert all(each.topics == [b'topic'] or b'topic' in each.topic_partitions for each in old)
        assert all(each.cluster.topics() == {'topic'} for each in evented)
        for each in evented:
            with pytest.raises(AttributeError, match='evented'):
                each.hosts  # noqa: B018
        for each in old:
            with pytest.raises(kafka.errors.IllegalStateError, match='blocking'):
                each.poll()
        assert {type(each).__name__ for each in old + evented} == {'KafkaClient'}
    finally:
        for each in old + evented:
            each.close()


def test_a_blocking_client_is_not_given_options_of_the_evented_one(cluster):
    with pytest.raises(TypeError, match='bootstrap_servers'):
        kafka.KafkaClient(cluster.bootstrap, bootstrap_servers=cluster.bootstrap)


def test_producers_of_three_eras_write_to_one_topic(cluster):
    """What each wrote, the blocking client of 0.9.5 reads, in order."""
    old = kafka.KafkaClient(cluster.bootstrap)
    simple = kafka.SimpleClient(cluster.bootstrap)
    try:
        kafka.SimpleProducer(old).send_messages(b'topic', b'0.9.5')
        kafka.SimpleProducer(simple).send_messages('topic', b'1.x simple')
        with kafka.KafkaProducer(bootstrap_servers=cluster.bootstrap) as producer:
            producer.send('topic', b'1.x').get(timeout=20)
            producer.send('topic', b'1.x key', b'key', 0).get(timeout=20)  # fourth: the partition
            producer.send('topic', b'2.x', b'key', [('a', b'b')]).get(timeout=20)  # or headers
        consumer = kafka.SimpleConsumer(old, b'group', b'topic', auto_commit=False)
        found = [each.message.value for each in consumer.get_messages(count=5, timeout=20)]
        assert found == [b'0.9.5', b'1.x simple', b'1.x', b'1.x key', b'2.x']
    finally:
        old.close()
        simple.close()
