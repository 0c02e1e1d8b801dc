"""Every name that the 0.9.5 document lists is there, and takes the arguments that it lists.

The lists below are the document's section 3.4 in its order, each name once, under the path that it
is defined at; a second list holds the other paths. ``async`` is written ``async_send``, the name
that it has since it is a keyword.
"""

from __future__ import annotations

import inspect

import pytest

from test.documented_calls import check_call, find

SIGNATURES = """
kafka.consumer.base.Consumer(client, group, topic, partitions=None, auto_commit=True, \
auto_commit_every_n=100, auto_commit_every_t=5000)
kafka.consumer.base.Consumer.commit(partitions=None)
kafka.consumer.base.Consumer.fetch_last_known_offsets(partitions=None)
kafka.consumer.base.Consumer.pending(partitions=None)
kafka.consumer.base.Consumer.provide_partition_info()
kafka.consumer.base.Consumer.stop()
kafka.consumer.kafka.KafkaConsumer(*topics, **configs)
kafka.consumer.kafka.KafkaConsumer.close()
kafka.consumer.kafka.KafkaConsumer.commit()
kafka.consumer.kafka.KafkaConsumer.configure(**configs)
kafka.consumer.kafka.KafkaConsumer.fetch_messages()
kafka.consumer.kafka.KafkaConsumer.get_partition_offsets(topic, partition, request_time_ms, \
max_num_offsets)
kafka.consumer.kafka.KafkaConsumer.next()
kafka.consumer.kafka.KafkaConsumer.offsets(group=None)
kafka.consumer.kafka.KafkaConsumer.set_topic_partitions(*topics)
kafka.consumer.kafka.KafkaConsumer.task_done(message)
kafka.consumer.kafka.OffsetsStruct(fetch, highwater, commit, task_done)
kafka.consumer.multiprocess.Events(start, pause, exit)
kafka.consumer.multiprocess.MultiProcessConsumer(client, group, topic, partitions=None, \
auto_commit=True, auto_commit_every_n=100, auto_commit_every_t=5000, num_procs=1, \
partitions_per_proc=0, **simple_consumer_options)
kafka.consumer.multiprocess.MultiProcessConsumer.get_messages(count=1, block=True, timeout=10)
kafka.consumer.multiprocess.MultiProcessConsumer.stop()
kafka.consumer.simple.FetchContext(consumer, block, timeout)
kafka.consumer.simple.SimpleConsumer(client, group, topic, auto_commit=True, partitions=None, \
auto_commit_every_n=100, auto_commit_every_t=5000, fetch_size_bytes=4096, buffer_size=4096, \
max_buffer_size=32768, iter_timeout=None, auto_offset_reset='largest')
kafka.consumer.simple.SimpleConsumer.get_message(block=True, timeout=0.1, get_partition_info=None)
kafka.consumer.simple.SimpleConsumer.get_messages(count=1, block=True, timeout=0.1)
kafka.consumer.simple.SimpleConsumer.reset_partition_offset(partition)
kafka.consumer.simple.SimpleConsumer.seek(offset, whence=None, partition=None)
kafka.partitioner.base.Partitioner(partitions)
kafka.partitioner.base.Partitioner.partition(key, partitions=None)
kafka.partitioner.hashed.LegacyPartitioner(partitions)
kafka.partitioner.hashed.LegacyPartitioner.partition(key, partitions=None)
kafka.partitioner.hashed.Murmur2Partitioner(partitions)
kafka.partitioner.hashed.Murmur2Partitioner.partition(key, partitions=None)
kafka.partitioner.hashed.murmur2(key)
kafka.partitioner.roundrobin.RoundRobinPartitioner(partitions)
kafka.partitioner.roundrobin.RoundRobinPartitioner.partition(key, partitions=None)
kafka.producer.base.Producer(client, req_acks=1, ack_timeout=1000, codec=None, \
codec_compresslevel=None, sync_fail_on_error=True, async_send=False, batch_send=False, \
batch_send_every_n=20, batch_send_every_t=20, async_retry_limit=None, async_retry_backoff_ms=100, \
async_retry_on_timeouts=True, async_queue_maxsize=0, async_queue_put_timeout=0, \
async_log_messages_on_error=True, async_stop_timeout=30)
kafka.producer.base.Producer.send_messages(topic, partition, *msg)
kafka.producer.base.Producer.stop(timeout=None)
kafka.producer.keyed.KeyedProducer(*args, **kwargs)
kafka.producer.keyed.KeyedProducer.send(topic, key, msg)
kafka.producer.keyed.KeyedProducer.send_messages(topic, key, *msg)
kafka.producer.simple.SimpleProducer(*args, **kwargs)
kafka.producer.simple.SimpleProducer.send_messages(topic, *msg)
kafka.client.KafkaClient(hosts, client_id=b'kafka-python', timeout=120, correlation_id=0)
kafka.client.KafkaClient.close()
kafka.client.KafkaClient.copy()
kafka.client.KafkaClient.ensure_topic_exists(topic, timeout=30)
kafka.client.KafkaClient.get_partition_ids_for_topic(topic)
kafka.client.KafkaClient.has_metadata_for_topic(topic)
kafka.client.KafkaClient.load_metadata_for_topics(*topics)
kafka.client.KafkaClient.reinit()
kafka.client.KafkaClient.reset_all_metadata()
kafka.client.KafkaClient.reset_topic_metadata(*topics)
kafka.client.KafkaClient.send_consumer_metadata_request(payloads=[], fail_on_error=True, \
callback=None)
kafka.client.KafkaClient.send_fetch_request(payloads=[], fail_on_error=True, callback=None, \
max_wait_time=100, min_bytes=4096)
kafka.client.KafkaClient.send_metadata_request(payloads=[], fail_on_error=True, callback=None)
kafka.client.KafkaClient.send_offset_commit_request(group, payloads=[], fail_on_error=True, \
callback=None)
kafka.client.KafkaClient.send_offset_fetch_request(group, payloads=[], fail_on_error=True, \
callback=None)
kafka.client.KafkaClient.send_offset_fetch_request_kafka(group, payloads=[], fail_on_error=True, \
callback=None)
kafka.client.KafkaClient.send_offset_request(payloads=[], fail_on_error=True, callback=None)
kafka.client.KafkaClient.send_produce_request(payloads=[], acks=1, timeout=1000, \
fail_on_error=True, callback=None)
kafka.codec.gzip_decode(payload)
kafka.codec.gzip_encode(payload, compresslevel=None)
kafka.codec.has_gzip()
kafka.codec.has_snappy()
kafka.codec.snappy_decode(payload)
kafka.common.check_error(response)
kafka.conn.KafkaConnection(host, port, timeout=120)
kafka.conn.KafkaConnection.close()
kafka.conn.KafkaConnection.copy()
kafka.conn.KafkaConnection.get_connected_socket()
kafka.conn.KafkaConnection.recv(request_id)
kafka.conn.KafkaConnection.reinit()
kafka.conn.KafkaConnection.send(request_id, payload)
kafka.conn.collect_hosts(hosts, randomize=True)
kafka.context.OffsetCommitContext(consumer)
kafka.context.OffsetCommitContext.commit()
kafka.context.OffsetCommitContext.commit_partition_offsets(partition_offsets)
kafka.context.OffsetCommitContext.handle_out_of_range()
kafka.context.OffsetCommitContext.mark(partition, offset)
kafka.context.OffsetCommitContext.rollback()
kafka.context.OffsetCommitContext.update_consumer_offsets(partition_offsets)
kafka.protocol.KafkaProtocol.decode_consumer_metadata_response(data)
kafka.protocol.KafkaProtocol.decode_fetch_response(data)
kafka.protocol.KafkaProtocol.decode_metadata_response(data)
kafka.protocol.KafkaProtocol.decode_offset_commit_response(data)
kafka.protocol.KafkaProtocol.decode_offset_fetch_response(data)
kafka.protocol.KafkaProtocol.decode_offset_response(data)
kafka.protocol.KafkaProtocol.decode_produce_response(data)
kafka.protocol.KafkaProtocol.encode_consumer_metadata_request(client_id, correlation_id, payloads)
kafka.protocol.KafkaProtocol.encode_fetch_request(client_id, correlation_id, payloads=None, \
max_wait_time=100, min_bytes=4096)
kafka.protocol.KafkaProtocol.encode_metadata_request(client_id, correlation_id, topics=None, \
payloads=None)
kafka.protocol.KafkaProtocol.encode_offset_commit_request(client_id, correlation_id, group, \
payloads)
kafka.protocol.KafkaProtocol.encode_offset_fetch_request(client_id, correlation_id, group, \
payloads, from_kafka=False)
kafka.protocol.KafkaProtocol.encode_offset_request(client_id, correlation_id, payloads=None)
kafka.protocol.KafkaProtocol.encode_produce_request(client_id, correlation_id, payloads=None, \
acks=1, timeout=1000)
kafka.protocol.create_gzip_message(payloads, key=None, compresslevel=None)
kafka.protocol.create_message(payload, key=None)
kafka.protocol.create_message_set(messages, codec=0, key=None, compresslevel=None)
kafka.protocol.create_snappy_message(payloads, key=None)
kafka.util.ReentrantTimer(t, fn, *args, **kwargs)
kafka.util.ReentrantTimer.start()
kafka.util.ReentrantTimer.stop()
kafka.util.crc32(data)
kafka.util.group_by_topic_and_partition(tuples)
kafka.util.kafka_bytestring(s)
kafka.util.read_int_string(data, cur)
kafka.util.read_short_string(data, cur)
kafka.util.relative_unpack(fmt, data, cur)
kafka.util.write_int_string(s)
kafka.util.write_short_string(s)
""".split('\n')[1:-1]  # fmt: skip

# What a program may write in place of the path above.
OTHER_PATHS = {
    'kafka.consumer.KafkaConsumer': 'kafka.consumer.kafka.KafkaConsumer',
    'kafka.consumer.MultiProcessConsumer': 'kafka.consumer.multiprocess.MultiProcessConsumer',
    'kafka.consumer.SimpleConsumer': 'kafka.consumer.simple.SimpleConsumer',
    'kafka.partitioner.HashedPartitioner': 'kafka.partitioner.hashed.LegacyPartitioner',
    'kafka.partitioner.LegacyPartitioner': 'kafka.partitioner.hashed.LegacyPartitioner',
    'kafka.partitioner.Murmur2Partitioner': 'kafka.partitioner.hashed.Murmur2Partitioner',
    'kafka.partitioner.RoundRobinPartitioner': 'kafka.partitioner.roundrobin.RoundRobinPartitioner',
    'kafka.partitioner.hashed.HashedPartitioner': 'kafka.partitioner.hashed.LegacyPartitioner',
    'kafka.producer.KeyedProducer': 'kafka.producer.keyed.KeyedProducer',
    'kafka.producer.SimpleProducer': 'kafka.producer.simple.SimpleProducer',
    'kafka.HashedPartitioner': 'kafka.partitioner.hashed.LegacyPartitioner',
    'kafka.KafkaClient': 'kafka.client.KafkaClient',
    'kafka.KafkaConnection': 'kafka.conn.KafkaConnection',
    'kafka.KafkaConsumer': 'kafka.consumer.kafka.KafkaConsumer',
    'kafka.KeyedProducer': 'kafka.producer.keyed.KeyedProducer',
    'kafka.MultiProcessConsumer': 'kafka.consumer.multiprocess.MultiProcessConsumer',
    'kafka.RoundRobinPartitioner': 'kafka.partitioner.roundrobin.RoundRobinPartitioner',
    'kafka.SimpleConsumer': 'kafka.consumer.simple.SimpleConsumer',
    'kafka.SimpleProducer': 'kafka.producer.simple.SimpleProducer',
    'kafka.create_gzip_message': 'kafka.protocol.create_gzip_message',
    'kafka.create_message': 'kafka.protocol.create_message',
    'kafka.create_snappy_message': 'kafka.protocol.create_snappy_message',
}

CONSTANTS = {
    'kafka.client.KafkaClient.CLIENT_ID': b'kafka-python',
    'kafka.producer.base.Producer.ACK_AFTER_CLUSTER_COMMIT': -1,
    'kafka.producer.base.Producer.ACK_AFTER_LOCAL_WRITE': 1,
    'kafka.producer.base.Producer.ACK_NOT_REQUIRED': 0,
    'kafka.producer.base.Producer.DEFAULT_ACK_TIMEOUT': 1000,
    'kafka.protocol.KafkaProtocol.CONSUMER_METADATA_KEY': 10,
    'kafka.protocol.KafkaProtocol.FETCH_KEY': 1,
    'kafka.protocol.KafkaProtocol.METADATA_KEY': 3,
    'kafka.protocol.KafkaProtocol.OFFSET_COMMIT_KEY': 8,
    'kafka.protocol.KafkaProtocol.OFFSET_FETCH_KEY': 9,
    'kafka.protocol.KafkaProtocol.OFFSET_KEY': 2,
    'kafka.protocol.KafkaProtocol.PRODUCE_KEY': 0,
}

# Options that are read by their names from **kwargs, with their defaults.
EXPANDED = {
    'kafka.producer.simple.SimpleProducer': ('random_start', True),
    'kafka.producer.keyed.KeyedProducer': (
        'partitioner',
        'kafka.partitioner.hashed.LegacyPartitioner',
    ),
}


@pytest.mark.parametrize('line', SIGNATURES)
def test_a_call_as_the_document_has_it_fits(line):
    check_call(line)


@pytest.mark.parametrize('path', sorted(OTHER_PATHS))
def test_the_other_paths_lead_to_the_same_object(path):
    assert find(path) is find(OTHER_PATHS[path])


@pytest.mark.parametrize('path', sorted(CONSTANTS))
def test_constants_have_the_documented_values(path):
    assert find(path) == CONSTANTS[path]


@pytest.mark.parametrize('path', sorted(EXPANDED))
def test_options_by_name_have_their_defaults(path):
    name, default = EXPANDED[path]
    found = inspect.signature(find(path)).parameters[name].default
    assert found == (find(default) if isinstance(default, str) else default)


def test_defaults_of_the_kafka_consumer():
    """The class has those of later releases, where they have the same name."""
    defaults = dict(find('kafka.consumer.kafka.DEFAULT_CONSUMER_CONFIG'))
    assert defaults.keys() <= find('kafka.consumer.kafka.KafkaConsumer').DEFAULT_CONFIG.keys()
    identity = defaults.pop('deserializer_class')
    assert identity(b'raw') == b'raw'
    documented = {
        'client_id': 'kafka.consumer.kafka',
        'group_id': None,
        'fetch_message_max_bytes': 1024 * 1024,
        'fetch_min_bytes': 1,
        'fetch_wait_max_ms': 100,
        'refresh_leader_backoff_ms': 200,
        'bootstrap_servers': [],
        'socket_timeout_ms': 30 * 1000,
        'auto_offset_reset': 'largest',
        'auto_commit_enable': False,
        'auto_commit_interval_ms': 60 * 1000,
        'auto_commit_interval_messages': None,
        'consumer_timeout_ms': -1,
    }
    assert {name: defaults[name] for name in documented} == documented


def test_xerial_framing_is_an_option_of_the_snappy_encoder():
    """Its default is that of 1.2.1, framed: raw blocks no other client can read in a message."""
    parameters = inspect.signature(find('kafka.codec').snappy_encode).parameters
    assert list(parameters)[:3] == ['payload', 'xerial_compatible', 'xerial_blocksize']
    assert parameters['xerial_blocksize'].default == 32768
