"""Every row of the table in docs/upgrading.rst has a test that holds what it says."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from test.sources import ROOT

TESTS = Path(ROOT, 'test')
PAGE = Path(ROOT, 'docs') / 'upgrading.rst'

# First column of a row -> file (below test/) and tests in it.
HELD_BY = {
    '``acks`` and ``enable_idempotence`` that are not given': (
        'config/test_option_tables.py',
        'test_defaults_of_later_eras',
    ),
    'options that there are not': ('producer/test_kafka.py', 'test_unknown_options'),
    "``api_version`` of a release that there is not, as ``'9.9'``": (
        'config/test_resolution.py',
        'test_a_release_that_there_is_not_is_taken',
    ),
    'no broker at the start, ``api_version`` not given': (
        'producer/test_kafka.py',
        'test_nobody_there',
    ),
    'a callback that waits for a future': (
        'producer/test_kafka.py',
        'test_callbacks_run_and_may_not_wait',
    ),
    'a producer in the child of a fork': (
        'producer/test_kafka.py',
        'test_the_child_of_a_fork_is_told',
    ),
    '``pickle`` of a producer': (
        'producer/test_kafka.py',
        'test_a_pickled_producer_is_its_options',
    ),
    '``commit()``': ('consumer/test_commits.py', 'test_what_was_handed_out_is_committed'),
    'a call while another thread is inside': (
        'consumer/test_one_thread.py',
        'test_another_thread_is_told_who_is_inside',
    ),
    'a record that a deserializer refuses, a batch that is damaged': (
        'behaviour/test_bad_records.py',
        'test_what_a_deserializer_refuses_is_named_and_not_stepped_over_as_corrupt',
        'test_a_damaged_batch_is_named_each_time_and_stepped_over',
    ),
    '``poll()`` behind iteration': (
        'consumer/test_modern_polling.py',
        'test_poll_and_iteration_lose_and_repeat_nothing',
    ),
    '``task_done()``, ``offsets()``': (
        'consumer/test_commits.py',
        'test_marks_are_what_is_committed_once_there_are_any',
    ),
    '``async`` as an option': (
        'producer/test_base.py',
        'test_the_seventh_argument_is_the_asynchronous_flag_readable_under_both_names',
    ),
    'wrong arguments': ('test_client.py', 'test_wrong_argument_is_a_type_error_that_names_it'),
    'topics in ``client.topic_partitions`` and ``topics_to_brokers``': (
        'blocking/test_topic_maps.py',
        'test_every_access_takes_both_spellings',
    ),
    'topics and groups that come back': (
        'consumer/test_base.py',
        'test_names_stay_as_given_with_a_client_of_1_x',
    ),
    '``KafkaClient(bootstrap_servers=...)``': (
        'evented/test_client.py',
        'test_two_kinds_of_client',
    ),
    '``snappy_encode`` without ``xerial_compatible``': (
        'test_codec.py',
        'test_snappy_frames_by_default_and_reads_both',
    ),
    '``kafka.util.crc32``, texts of errors 14 to 16': ('test_util.py', 'test_crc32_is_unsigned'),
    'constructing an old class': ('test_client.py', 'test_hosts_become_pairs'),
    'requests that Kafka 4.0 dropped (KIP-896)': (
        'integration/test_connection.py',
        'test_hand_made_requests_are_answered_in_the_layout_of_version_0',
    ),
    "a group's offsets": ('integration/test_client.py', 'test_a_committed_offset_is_fetched_back'),
    '``send_offset_request``': (
        'integration/test_client.py',
        'test_offsets_before_the_end_as_a_list_newest_first',
    ),
    '``acks`` above 1': (
        'integration/test_client.py',
        'test_acks_of_a_number_of_replicas_means_all_of_them_since_0_9',
    ),
    'what others wrote': (
        'integration/test_formats.py',
        'test_the_client_reads_what_confluent_writes',
    ),
    'a partition that has no leader, or is not there': (
        'test_simple_client.py',
        'test_leader_that_cannot_be_found_fails_the_payload',
    ),
    '``KafkaConsumer`` where nothing tells the era': (
        'consumer/test_group.py',
        'test_where_nothing_tells_the_environment_does_else_it_is_modern',
        'test_a_verb_that_only_0_9_5_had_settles_it_with_one_line',
        'test_a_consumer_of_0_9_5_fixes_its_position_in_the_constructor',
    ),
    'a method of 1.0 and later on a ``KafkaConsumer`` of 0.9.5': (
        'consumer/test_group.py',
        'test_modern_methods_raise_in_0_9_5',
    ),
    '``kafka.conn.collect_hosts``': (
        'test_simple_client.py',
        'test_hosts_are_triples_with_the_address_family',
    ),
    '``KafkaProtocol``': (
        'protocol/test_legacy_structs.py',
        'test_without_ids_an_encoder_returns_a_request_struct',
    ),
    'how messages are written': (
        'test_codec.py',
        'test_batches_are_packed_by_isal_to_about_the_size_of_gzip_6',
    ),
    'a process of ``MultiProcessConsumer`` that dies': (
        'consumer/test_multiprocess.py',
        'test_a_process_that_is_started_again_goes_on_behind_what_it_has_sent',
    ),
    'automatic commits of ``KafkaConsumer``': (
        'consumer/test_kafka_09_commit.py',
        'test_marks_are_committed_in_time_though_nothing_more_comes',
    ),
    '``fetch_wait_max_ms`` above ``socket_timeout_ms``': (
        'consumer/test_kafka_09_fetch.py',
        'test_brokers_wait_less_long_than_sockets',
    ),
    'transactions': (
        'integration/test_simple_consumer.py',
        'test_markers_of_transactions_are_stepped_over',
    ),
    '``fetch_size_bytes``, ``buffer_size``': (
        'integration/test_simple_consumer.py',
        'test_a_message_above_the_largest_buffer_is_an_error',
    ),
    'a topic that is created by asking for it': (
        'integration/test_client.py',
        'test_ensure_topic_exists_creates_the_topic',
    ),
    'partition errors while metadata is loaded': (
        'test_client.py',
        'test_partition_errors_do_not_raise',
    ),
    '``get_messages(timeout=None)``': (
        'consumer/test_simple.py',
        'test_no_timeout_waits_for_ever',
    ),
    '``partitions_per_proc``': (
        'integration/test_documented_consumers.py',
        'test_several_processes_read_a_topic',
    ),
    '``if not context`` of ``OffsetCommitContext``': (
        'test_context.py',
        'test_the_truth_value_tells_whether_anything_was_marked',
    ),
    'messages an asynchronous producer could not send': (
        'blocking/test_async_worker.py',
        'test_messages_that_failed_too_often_are_counted_as_lost',
    ),
    'a process that was forked': (
        'test_conn.py',
        'test_a_forked_process_gets_a_connection_of_its_own',
    ),
    'a broker that stays away while messages are fetched': (
        'consumer/test_simple_fetch.py',
        'test_a_broker_that_stays_away_is_given_up_when_the_time_is_over',
    ),
    '``ReentrantTimer`` started again': (
        'test_util.py',
        'test_timer_can_be_started_again_and_goes_on_calling',
    ),
    '``send_messages`` after ``stop()``': (
        'producer/test_base_async.py',
        'test_a_stopped_producer_takes_no_more_messages',
    ),
    '``send_messages`` without messages': (
        'producer/test_base.py',
        'test_nothing_to_send_sends_nothing',
    ),
    'bytes that no broker sends': (
        'test_conn.py',
        'test_bytes_that_no_broker_sends_are_a_frame_error',
    ),
    'errors that came after 0.9': (
        'test_errors.py',
        'test_every_code_up_to_4_4_0_has_a_class_a_text_and_a_meaning',
    ),
    'snappy without its package': (
        'test_codec.py',
        'test_snappy_and_lz4_are_read_without_a_package',
    ),
    '``KafkaClient(host, port)``': (
        'test_client.py',
        'test_host_and_port_may_come_apart',
    ),
    '``set_topic_partitions`` or ``configure`` of ``KafkaConsumer`` that fails': (
        'consumer/test_kafka_09.py',
        'test_configure_that_fails_changes_nothing',
        'test_setting_partitions_that_fails_keeps_the_former_ones',
    ),
    'an error in one partition of ``KafkaConsumer``': (
        'consumer/test_kafka_09_fetch.py',
        'test_each_round_begins_with_another_partition',
        'test_a_message_that_never_deserializes_holds_up_its_partition_only',
        'test_a_message_that_is_too_large_names_itself_and_the_option',
    ),
    'a partition of ``KafkaConsumer`` that has lost its leader': (
        'consumer/test_kafka_09_fetch.py',
        'test_a_partition_without_leader_does_not_keep_the_others_waiting',
        'test_a_partition_without_leader_is_waited_for_as_long_as_the_program_says',
    ),
    '``get_messages()`` of ``SimpleConsumer`` that raises ``ConsumerFetchSizeTooSmall``': (
        'consumer/test_simple_fetch.py',
        'test_messages_taken_before_one_that_is_too_large_are_handed_out_by_the_next_call',
    ),
    'a message cut off behind whole ones (``SimpleClient``, ``max_buffer_size=None``)': (
        'consumer/test_simple_fetch.py',
        'test_message_cut_off_behind_others_does_not_fill_the_memory',
        'test_message_cut_off_behind_others_in_the_largest_buffer_waits_for_the_next_round',
    ),
    'a new topic with ``KeyedProducer`` and ``SimpleClient``': (
        'producer/test_keyed.py',
        'test_new_topic_is_loaded_though_it_is_being_created_with_a_client_of_1_x',
    ),
    'how the processes of ``MultiProcessConsumer`` start': (
        'blocking/test_worker_processes.py',
        'test_fork_is_used_unless_the_program_has_set_another_method',
        'test_a_child_knows_no_main_module_and_leaves_signals_to_its_parent',
        'test_what_cannot_be_sent_is_named',
    ),
    'options that ``MultiProcessConsumer`` does not know': (
        'consumer/test_multiprocess.py',
        'test_wrong_arguments_are_named_before_anything_is_done',
    ),
    '``MultiProcessConsumer.offsets`` written by a program': (
        'consumer/test_multiprocess.py',
        'test_offsets_that_the_program_writes_are_where_the_processes_go_on',
    ),
    'the first messages of ``MultiProcessConsumer``': (
        'consumer/test_multiprocess.py',
        'test_the_second_begins_when_all_processes_have_asked_once',
        'test_not_blocking_takes_what_is_there_after_the_time_of_one_fetch',
    ),
    'what is consumed by a program of Python 2': (
        'cli/test_python2.py',
        'test_what_is_consumed_is_bytes_and_lines_that_compare_it_with_text_are_named',
    ),
    "``str`` keys with a partitioner of the program's own": (
        'behaviour/test_text_mode.py',
        'test_a_partitioner_of_the_program_gets_keys_as_the_program_has_them',
        'test_the_packages_partitioners_go_by_the_bytes_that_are_sent',
    ),
    '``str`` topics, groups and client ids in requests made by hand': (
        'behaviour/test_text_mode.py',
        'test_names_in_requests_made_by_hand_are_utf_8',
    ),
    '``print x,`` of Python 2': (
        'cli/test_python2.py',
        'test_a_print_that_goes_on_leaves_its_blank_at_the_end_of_a_line_too',
    ),
}


def first_column():
    """Return what stands in the first column of the page's tables, but for their heads."""
    text = PAGE.read_text(encoding='utf-8')
    tables = text.split('list-table::')[1:]
    cells = [re.findall(r'(?m)^   \* - (.*(?:\n       .*)*)', table)[1:] for table in tables]
    assert all(cells)
    return [' '.join(cell.split()) for table in cells for cell in table]


def test_every_row_is_held_by_a_test_and_every_test_is_of_a_row():
    assert sorted(first_column()) == sorted(HELD_BY)


@pytest.mark.parametrize('what', sorted(HELD_BY))
def test_the_tests_of_a_row_exist(what):
    path, *names = HELD_BY[what]
    tree = ast.parse((TESTS / path).read_text(encoding='utf-8'))
    there = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    assert names
    assert set(names) <= there
