"""Where each example and each promise of the documents is tested, and how examples are run.

Owns two tables. EXAMPLES: every piece of code in the documents "kafka-python 0.9.5" and
"kafka.consumer 0.9", and in "kafka-python 1.2.1" about consumer, producer, client and connection,
in their order. PROMISES: every sentence there that says what will happen.
A row is "place | what stands there" and, below it, the test that holds it:
test/behaviour/test_documented.py checks that these tests exist and that no test of an example is
missing here. A test without a path is in one of the files test_documented_*.py beside this one, one
with a path below test/.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import NamedTuple

from test.integration.fixtures import offset
from test.integration.oracles import Confluent

ROOT = Path(__file__).resolve().parents[2]
SHOWN = ('-W', 'error', '-W', 'ignore::ResourceWarning')

EXAMPLES = """
# kafka-python 0.9.5
3.1.1 SimpleProducer | one message, several, encoded text
    test_messages_are_sent_one_or_several_at_a_time
3.1.2 Asynchronous mode | async=True
    test_an_asynchronous_program_may_end_at_once
3.1.2 Asynchronous mode | async=True
    test_asynchronous_sending_needs_no_answer
3.1.2 Asynchronous mode | async=False with acknowledgements
    test_a_program_waits_for_acknowledgements
3.1.2 Asynchronous mode | async=False with acknowledgements
    test_acknowledgements_tell_the_offset
3.1.2 Asynchronous mode | batches of 20 messages or 60 seconds
    test_messages_are_sent_after_20_or_by_stop
3.1.3 Keyed messages | default partitioner
    test_keyed_messages_by_the_default_partitioner
3.1.3 Keyed messages | Murmur2Partitioner
    test_murmur2_hashes_as_the_java_client_does
3.1.3 Keyed messages | RoundRobinPartitioner
    test_keyed_messages_may_go_round_robin
3.1.4 KafkaConsumer | one topic, printed
    test_messages_are_printed_as_they_come
3.1.4 KafkaConsumer | one topic, printed, without end
    test_a_program_prints_until_it_is_interrupted
3.1.4 KafkaConsumer | two topics, task_done, commit
    test_several_topics_with_commits
3.1.4 KafkaConsumer | fetch_messages in an endless loop
    test_messages_come_in_batches
3.1.4 KafkaConsumer | settings of the constructor
    test_settings_of_the_constructor
3.1.5 Multiprocess consumer | both splits, iteration, get_messages
    test_several_processes_read_a_topic
3.1.6 Low level | send_produce_request
    test_low_level_produce_request
# 3.2 installs that package, 3.3 runs its tests with tox: README.rst has the commands of this one.
3.3.3 Integration tests | KAFKA_VERSION=... ./build_integration.sh
    servers/test_releases.py::test_build_script_chooses_the_same_releases_as_the_fixtures
3.4.1 KafkaConsumer | set_topic_partitions, three forms
    test_the_three_forms_of_topics_and_partitions
3.4.1 KafkaConsumer | set_topic_partitions from 12 and 45
    test_offsets_to_start_at
3.4.1 Producer | unicode_message.encode('utf-8')
    test_the_base_producer_sends_without_key_to_the_partition_it_is_told
3.4.1 OffsetCommitContext | the loop around it
    test_offset_commit_context
3.4.1 OffsetCommitContext | provide_partition_info before mark
    test_offset_commit_context
3.4.1 signatures | every class, method and function
    behaviour/test_documented_signatures.py::test_a_call_as_the_document_has_it_fits
# kafka.consumer 0.9
kafka.consumer.kafka | a tail consumer, print statements
    test_tail_consumer_in_the_syntax_of_its_day
kafka.consumer.kafka | two topics, task_done, commit
    test_several_topics_with_commits
kafka.consumer.kafka | next() and task_done
    test_one_message_at_a_time
kafka.consumer.kafka | fetch_messages in an endless loop
    test_messages_come_in_batches
kafka.consumer.kafka | settings, metadata_broker_list
    test_settings_of_the_constructor
configure | settings, auto_commit_interval_messages
    test_settings_may_be_given_later
next | for m in consumer: pass
    test_iteration_is_next_and_ends_in_a_timeout
set_topic_partitions | three forms
    test_the_three_forms_of_topics_and_partitions
set_topic_partitions | from 123 and 456
    test_offsets_to_start_at
kafka.consumer.multiprocess | auto_commit as fourth argument
    test_processes_of_the_first_0_9_releases
kafka.consumer.simple | the constructor
    test_simple_consumer_with_the_options_in_their_places
# kafka-python 1.2.1
KafkaConsumer | one topic, printed
    test_messages_of_a_topic_are_printed
KafkaConsumer | assign, next(consumer)
    test_partitions_are_assigned_by_hand
KafkaConsumer | msgpack.loads, subscribe
    test_msgpack_values
KafkaProducer | a hundred messages, flush, get(timeout=60), a key
    test_messages_in_the_background_and_one_that_is_waited_for
KafkaProducer | the same, as a program of its own
    test_the_program_of_the_readme_may_end_without_closing
KafkaProducer | json, str.encode as serializer, gzip
    test_json_keys_and_compression
Usage, KafkaConsumer | group_id, fields of each message
    test_latest_messages_in_a_group_that_commits
Usage, KafkaConsumer | earliest, no commits
    test_earliest_messages_without_commits
Usage, KafkaConsumer | json
    test_json_values
Usage, KafkaConsumer | msgpack.unpackb
    test_msgpack_unpackb
Usage, KafkaConsumer | consumer_timeout_ms=1000
    test_iteration_stops_after_a_second_without_a_message
Usage, KafkaConsumer | subscribe(pattern='^awesome.*')
    test_a_regex_of_topics
Usage, KafkaConsumer | two in parallel
    test_two_consumers_in_parallel
Usage, KafkaProducer | future, KafkaError, metadata, keys, flush
    test_the_usage_of_a_producer
Usage, KafkaProducer | msgpack
    test_objects_through_serializers_and_retries
Usage, KafkaProducer | json in ASCII, retries=5
    test_json_for_ascii_and_configured_retries
Protocol | check_version() from the prompt
    test_a_broker_is_probed_for_its_version
kafka-python API | every call of KafkaConsumer, KafkaProducer, KafkaClient, BrokerConnection
    behaviour/test_documented_names_1_2.py::test_a_call_as_the_documents_have_it_fits
"""

PROMISES = """
# 3.1 Usage
3.1.1 | the application encodes messages
    integration/test_producer.py::test_what_is_not_bytes_is_refused_before_anything_is_sent
3.1.2 | acknowledged once written to the local log
    test_acknowledgements_tell_the_offset
3.1.2 | acknowledged once all in-sync replicas have it
    integration/test_three_brokers.py::test_a_cluster_commit_means_that_every_replica_has_it
3.1.2 | sent after 20 messages
    test_messages_are_sent_after_20_or_by_stop
3.1.2 | sent after a time
    test_messages_are_sent_after_their_time
3.1.2 | lost where the producer dies before
    test_what_waits_is_lost_where_the_producer_dies
3.1.2 | stop() sends what waits
    test_messages_are_sent_after_20_or_by_stop
3.1.3 | HashedPartitioner is the default, by hash()
    test_keyed_messages_by_the_default_partitioner
3.1.3 | Murmur2Partitioner hashes as the Java client
    test_murmur2_hashes_as_the_java_client_does
3.1.4 | messages are named tuples of five fields
    test_messages_are_named_tuples
3.1.4 | what is not marked by task_done is not committed
    test_several_topics_with_commits
3.1.4 | defaults of the settings
    behaviour/test_documented_signatures.py::test_defaults_of_the_kafka_consumer
3.1.5 | num_procs processes; two partitions each
    test_several_processes_read_a_topic
# 3.4.1 kafka.consumer
Consumer | fetches metadata of its partitions
    consumer/test_base.py::test_partitions_default_to_all_and_are_not_looked_up_when_given
Consumer.commit | True on success, False on failure
    consumer/test_base.py::test_a_failed_commit_is_logged_and_gives_false_and_keeps_the_counter
Consumer.commit | of chosen partitions
    test_commit_of_chosen_partitions_only
Consumer.pending | counts what is pending, of chosen partitions
    integration/test_simple_consumer.py::test_pending_counts_what_was_not_handed_out
provide_partition_info | messages come with their partition
    test_simple_consumer_with_every_option
SimpleConsumer | auto commit by count
    integration/test_simple_consumer.py::test_auto_commit_by_count_keeps_pace
SimpleConsumer | auto commit by time
    integration/test_simple_consumer.py::test_auto_commit_by_time_commits_without_being_asked
SimpleConsumer | the two triggers reset each other
    test_a_commit_by_count_leaves_the_timer_nothing_to_do
SimpleConsumer | a manual commit resets them
    test_a_manual_commit_resets_the_count
SimpleConsumer | buffer_size doubles up to max_buffer_size
    consumer/test_simple_fetch.py::test_a_small_buffer_is_doubled_up_to_its_maximum_and_only_where_needed
SimpleConsumer | max_buffer_size None is no limit
    integration/test_simple_consumer.py::test_without_a_largest_buffer_any_message_is_delivered
SimpleConsumer | iter_timeout ends the iteration
    consumer/test_simple.py::test_iteration_ends_when_the_time_brings_nothing
SimpleConsumer | without iter_timeout it never ends
    consumer/test_simple.py::test_endless_iteration_asks_for_60_seconds_and_one_byte_and_pauses
SimpleConsumer | auto_offset_reset largest and smallest
    integration/test_simple_consumer.py::test_an_offset_out_of_range_is_reset_by_policy
SimpleConsumer | any other policy raises
    integration/test_simple_consumer.py::test_without_a_policy_the_error_comes_out
SimpleConsumer | the group must be None where none is stored
    consumer/test_base.py::test_without_a_group_offsets_start_at_0
get_messages | at most count
    consumer/test_simple.py::test_get_messages_returns_at_most_count_and_keeps_the_rest
get_messages | block True: until all came
    consumer/test_simple.py::test_get_messages_collects_over_several_fetches
get_messages | block a number: until that many came
    integration/test_simple_consumer.py::test_get_messages_with_a_number_blocks_only_for_the_first_ones
get_messages | timeout in seconds, None for ever
    test_messages_that_arrive_later_are_waited_for
reset_partition_offset | by policy, returns the offset
    test_reset_by_policy_returns_the_offset
reset_partition_offset | None on failure
    consumer/test_simple_seek.py::test_a_failed_reset_gives_none_and_leaves_the_positions
seek | whence None, 0, 2, of one partition
    test_seek_as_the_documents_count
seek | whence 1
    test_seek_relative_to_the_current_offset
FetchContext | holds the state of a fetch
    consumer/test_simple_fetch.py::test_fetch_context_sets_and_restores_the_waits
FetchContext | its three arguments
    test_fetch_context_is_a_context_manager_of_the_three_arguments
SimpleConsumer | every option
    test_simple_consumer_with_every_option
MultiProcessConsumer | every option, timeout None
    test_processes_with_every_option
KafkaConsumer.commit | True, or False with nothing to commit
    test_several_topics_with_commits
KafkaConsumer | nothing without servers
    test_without_servers_nothing_can_be_consumed
KafkaConsumer.commit | needs a server that stores offsets
    integration/test_kafka_consumer_09.py::test_the_release_that_stores_no_offsets_says_so
KafkaConsumer.close | closes its client
    consumer/test_kafka_09.py::test_close_closes_the_client_and_commits_nothing
configure | client_id, socket_timeout_ms
    consumer/test_kafka_09.py::test_the_client_gets_servers_name_and_the_timeout_in_seconds
configure | refresh_leader_backoff_ms, more or less
    consumer/test_kafka_09_fetch.py::test_a_leader_that_moved_costs_a_pause_and_new_metadata
configure | bootstrap_servers need not be all
    integration/test_three_brokers.py::test_one_of_three_brokers_is_enough_to_consume_from_all
configure | fetch_message_max_bytes bounds a fetch
    test_small_fetches_bring_everything_in_order
configure | fetch_min_bytes is waited for up to fetch_wait_max_ms
    test_a_fetch_waits_for_its_least_bytes
configure | auto_offset_reset smallest and largest
    test_an_offset_out_of_range_is_reset_by_policy
configure | any other policy raises
    test_any_other_policy_raises
configure | deserializer_class makes the value
    test_values_go_through_the_deserializer
configure | auto_commit_interval_ms
    test_auto_commit_by_time
configure | auto_commit_interval_messages
    test_auto_commit_by_count
configure | group_id: offsets are fetched for it
    test_a_group_goes_on_where_it_committed
configure | consumer_timeout_ms
    test_iteration_is_next_and_ends_in_a_timeout
fetch_messages | a generator over one round of requests
    consumer/test_kafka_09_fetch.py::test_fetch_messages_is_a_generator_over_one_round
fetch_messages | refreshes metadata on errors
    consumer/test_kafka_09_fetch.py::test_a_leader_that_moved_costs_a_pause_and_new_metadata
next | waits for ever without consumer_timeout_ms
    consumer/test_kafka_09_fetch.py::test_without_a_timeout_next_waits_for_the_message
get_partition_offsets | -1 the next offset, -2 the earliest, descending
    test_offsets_of_a_partition_newest_first
offsets | a copy of one group or of all four
    test_the_four_groups_of_offsets
set_topic_partitions | {topic: [partitions]} and (partitions,)
    test_several_partitions_of_a_topic
set_topic_partitions | a partition must be there
    test_a_partition_that_is_not_there
task_done | not True for a partition that is not consumed
    consumer/test_kafka_09_commit.py::test_a_message_of_a_partition_that_is_not_consumed_is_not_marked
task_done | True
    test_one_message_at_a_time
OffsetsStruct | four fields; copied and pickled
    test_the_tuple_of_offsets_can_be_copied_and_pickled
# 3.4.1 kafka.partitioner
Partitioner | chooses from the partitions; own ones derive from it
    test_a_partitioner_of_ones_own
Partitioner.partition | partitions may be given with the call
    partitioner/test_hashed.py::test_murmur2_partitioner_uses_the_list_of_the_call_unless_it_is_empty
murmur2 | the hash of the key, text is encoded
    partitioner/test_hashed.py::test_murmur2_takes_bytearrays_and_text
RoundRobinPartitioner | round robin
    partitioner/test_roundrobin.py::test_round_robin_takes_each_in_turn_whatever_the_key
# 3.4.1 kafka.producer
Producer | the thread uses client.copy()
    producer/test_base_async.py::test_the_thread_runs_what_the_module_calls_send_upstream_with_a_copy_of_the_client
Producer | codec, req_acks, ack_timeout
    test_every_codec_the_options_name
Producer | sync_fail_on_error False returns errors
    integration/test_producer.py::test_simple_producer_can_hand_back_the_error_in_place_of_raising
Producer | sync_fail_on_error True raises them
    integration/test_producer.py::test_simple_producer_raises_what_the_broker_refuses
Producer | every option of the asynchronous mode
    test_every_option_of_the_asynchronous_mode
Producer | async_retry_limit, None without end
    blocking/test_async_worker.py::test_without_a_limit_it_goes_on_until_it_works
Producer | async_retry_limit
    blocking/test_async_worker.py::test_a_request_is_sent_at_most_once_more_than_the_limit
Producer | async_retry_backoff_ms
    blocking/test_async_worker.py::test_failed_payloads_pause_and_do_not_refresh
Producer | async_retry_on_timeouts
    blocking/test_async_worker.py::test_time_outs_are_retried_where_that_was_asked_for
Producer | async_queue_maxsize; a full queue fails at once
    test_a_full_queue_fails_at_once_and_tells_what_was_not_queued
Producer | async_queue_put_timeout
    producer/test_base_async.py::test_a_full_queue_reports_the_messages_from_the_failing_one_on
Producer | async_log_messages_on_error: messages or hashes
    blocking/test_async_worker.py::test_failed_messages_are_logged_themselves_or_by_a_hash
Producer | async_stop_timeout
    blocking/test_async_worker.py::test_giving_up_after_the_stop_timeout_logs_what_is_lost
Producer.send_messages | key is null
    test_the_base_producer_sends_without_key_to_the_partition_it_is_told
Producer.stop | blocks until the thread is done
    producer/test_base_async.py::test_stop_sends_what_is_queued_first
KeyedProducer.send | the old name
    test_the_old_name_of_sending_with_a_key
SimpleProducer | random_start True
    producer/test_simple.py::test_a_random_start_reaches_every_partition
SimpleProducer | random_start False begins at partition 0
    integration/test_producer.py::test_simple_producer_takes_one_partition_per_call_in_turn
# 3.4.1 kafka.client
KafkaClient.copy | not connected until reinit()
    test_client.py::test_copy_has_unconnected_connections_and_its_own_maps
load_metadata_for_topics | limited to the topics given
    test_client.py::test_named_topics_are_forgotten_before_they_are_asked_for
load_metadata_for_topics | UnknownTopicOrPartitionError, LeaderNotAvailableError
    test_client.py::test_topic_error_is_raised_only_for_a_topic_asked_for_by_name
load_metadata_for_topics | partition errors do not raise
    test_client.py::test_partition_errors_do_not_raise
send_fetch_request | payloads share a request by broker
    test_client_sending.py::test_one_request_a_leader_all_sent_before_the_first_answer_is_read
send_produce_request | answers in the order of the payloads
    integration/test_three_brokers.py::test_responses_of_several_brokers_come_in_the_order_of_the_payloads
send_produce_request | no partition twice
    protocol/test_legacy.py::test_partition_twice_is_an_assertion_error
send_produce_request | acks 0: no answer
    integration/test_client.py::test_produce_without_acks_returns_at_once_and_writes
send_produce_request | acks above 1
    integration/test_client.py::test_acks_of_a_number_of_replicas_means_all_of_them_since_0_9
send_produce_request | fail_on_error
    test_client_sending.py::test_errors_come_back_where_that_is_wanted
send_produce_request | callback
    integration/test_client.py::test_callback_takes_the_place_of_each_answer
# kafka-python 1.2.1
KafkaConsumer | every call, and what it raises
    test_promises_of_the_calls_of_a_consumer
KafkaConsumer | subscriptions, and what they raise
    test_promises_about_subscriptions_of_a_consumer
KafkaProducer | options and what they do
    test_promises_of_the_producer
flush | ends lingering; all are done afterwards
    test_flush_ends_lingering_and_completes_what_was_sent
send, partitions_for | KafkaTimeoutError after max_block_ms
    test_without_metadata_send_raises_in_time
KafkaClient | every call
    test_the_calls_of_the_client
BrokerConnection | every call
    test_the_calls_of_a_connection
# 3.4.1 kafka.codec, kafka.common, kafka.conn
snappy_encode | the xerial framing
    test_codec.py::test_snappy_xerial_vector
snappy_encode | a block is at most xerial_blocksize
    test_codec.py::test_snappy_blocks_are_of_the_size_asked_for
kafka.common | fields of every tuple
    test_structs.py::test_tuples_have_their_name_and_fields_and_equal_plain_tuples
kafka.common | errno and message of every error
    test_errors.py::test_codes_of_0_9_5_have_their_old_names_and_texts
kafka.common | errors without a code
    test_errors.py::test_errors_without_a_code
KafkaConnection | timeout, None for ever
    test_conn.py::test_the_timeout_goes_to_the_socket_as_it_is
KafkaConnection.close | closes the socket
    test_conn.py::test_close_shuts_down_closes_and_leaves_the_object_usable
KafkaConnection.copy | not connected
    test_conn.py::test_a_copy_has_the_same_address_and_is_not_connected
KafkaConnection.recv | the answer's bytes
    test_conn.py::test_recv_without_send_returns_the_next_body_unchanged
KafkaConnection.reinit | closes and connects; ConnectionError
    test_conn.py::test_reinit_closes_and_connects
KafkaConnection.send | an encoded packet
    integration/test_connection.py::test_hand_made_requests_are_answered_in_the_layout_of_version_0
collect_hosts | joined by commas, shuffled on demand
    net/test_addresses.py::test_hosts_are_shuffled_when_asked
# 3.4.1 kafka.context
OffsetCommitContext | the last unsuccessful message is tried again
    test_offset_commit_context
commit | the marks, or back to the initial offsets
    test_offset_commit_context
rollback | the consumer goes back
    test_a_failure_inside_the_context_rolls_back
handle_out_of_range | seeks to the beginning
    test_out_of_range_inside_the_context_goes_to_the_beginning
helpers | explicit offsets
    test_the_helpers_of_the_context
# 3.4.1 kafka.protocol, kafka.util
KafkaProtocol | encoders make requests by their arguments
    protocol/test_legacy.py::test_produce_request_split_by_field
KafkaProtocol | decoders make tuples of the bytes
    protocol/test_legacy.py::test_fetch_response_split_by_field
encode_offset_fetch_request | version 0, or 1 with from_kafka
    protocol/test_legacy.py::test_offset_fetch_request_split_by_field
create_gzip_message | several payloads in one message
    integration/test_simple_consumer.py::test_compressed_messages_have_offsets_of_their_own
create_message_set | plain messages, or one compressed
    protocol/test_legacy_message_sets.py::test_message_set_with_codec_is_one_message
ReentrantTimer | milliseconds; can be started again
    test_util.py::test_timer_can_be_started_again_and_goes_on_calling
kafka_bytestring | text as UTF-8, bytes as they are
    test_util.py::test_kafka_bytestring
"""


class Row(NamedTuple):
    """A place in a document, what stands there, and the test that holds it."""

    place: str
    what: str
    test: str


def rows(table):
    """Return the rows of a table."""
    lines = [line for line in table.splitlines() if line and not line.startswith('#')]
    return [
        Row(*place_and_what.split(' | '), test.strip())
        for place_and_what, test in zip(lines[::2], lines[1::2])
    ]


def program(folder, source, *arguments, launcher=(), environment=()):
    """Run source as a program of its own to its end; warnings that are shown at all are errors.

    The programs of the documents close nothing, which is a warning that Python keeps to itself.

    Arguments: launcher: what stands before the program's path, as ``('-m', 'kafka', 'run')``;
    environment: variables of the program, besides the path to this package.
    """
    with start(folder, source, *arguments, launcher=launcher, environment=environment) as running:
        try:
            output, errors = running.communicate(timeout=90)
        except BaseException:
            running.kill()
            raise
    return subprocess.CompletedProcess(running.args, running.returncode, output, errors)


def start(folder, source, *arguments, launcher=(), environment=()):
    """Start source as a program of its own; otherwise as program(), which waits for its end."""
    path = folder / 'program.py'
    path.write_text(textwrap.dedent(source), encoding='utf-8')
    return subprocess.Popen(
        [sys.executable, *SHOWN, *launcher, str(path), *arguments],
        cwd=str(folder),
        env={**os.environ, 'PYTHONPATH': str(ROOT), **dict(environment)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def written(cluster, client, topic):
    """Return {partition: (key, value) pairs} of a topic, as confluent-kafka reads them."""
    client.load_metadata_for_topics(topic)
    ends = {p: offset(client, topic, p) for p in client.get_partition_ids_for_topic(topic)}
    judge = Confluent(cluster)
    return {p: judge.read(topic, end, partition=p) if end else [] for p, end in ends.items()}


def values_written(cluster, client, topic):
    """Return {partition: values} of a topic, as confluent-kafka reads them."""
    found = written(cluster, client, topic)
    return {partition: [value for _, value in pairs] for partition, pairs in found.items()}
