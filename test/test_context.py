"""kafka.context: marks, and what the end of a block does with them."""

from __future__ import annotations

import logging

import pytest

from kafka import SimpleConsumer
from kafka.context import OffsetCommitContext
from kafka.errors import FailedPayloadsError, OffsetOutOfRangeError, UnknownError
from kafka.structs import OffsetCommitRequest, OffsetCommitResponse
from test.fake_client import FakeClient, record


class Consumer:
    """Has what a context may use of a consumer, and notes what is done to it."""

    def __init__(self):
        self.client = FakeClient((0, 90), (0, 90))
        self.group = b'group'
        self.topic = b'topic'
        self.offsets = {0: 3, 1: 4}
        self.sought = []

    def seek(self, *args):
        self.sought.append((args, dict(self.offsets)))


@pytest.fixture
def consumer():
    return Consumer()


def commits(consumer):
    return [args for args, _ in consumer.client.called('send_offset_commit_request')]


def test_entering_copies_the_offsets_and_empties_the_marks(consumer):
    context = OffsetCommitContext(consumer)
    context.mark(0, 80)
    with context as entered:
        assert entered is context
        assert context.consumer is consumer
        assert context.initial_offsets == {0: 3, 1: 4}
        assert context.initial_offsets is not consumer.offsets
        assert context.high_water_mark == {}


def test_a_mark_is_the_offset_behind_the_message_and_never_moves_back(consumer):
    context = OffsetCommitContext(consumer)
    for partition, offset in ((0, 5), (0, 3), (1, 0), (1, 7)):
        context.mark(partition, offset)
    assert context.high_water_mark == {0: 6, 1: 8}


def test_the_truth_value_tells_whether_anything_was_marked(consumer):
    context = OffsetCommitContext(consumer)
    assert not context
    context.mark(0, 5)
    assert context


def test_marks_are_committed_in_one_request_and_become_the_offsets(consumer):
    with OffsetCommitContext(consumer) as context:
        consumer.offsets.update({0: 50, 1: 50})
        context.mark(1, 9)
        context.mark(0, 7)
    requests = [
        OffsetCommitRequest(b'topic', 1, 10, None),
        OffsetCommitRequest(b'topic', 0, 8, None),
    ]
    assert commits(consumer) == [(b'group', requests)]
    assert consumer.sought == [((0, 1), {0: 8, 1: 10})]


def test_a_partition_without_a_mark_is_neither_committed_nor_moved(consumer):
    with OffsetCommitContext(consumer) as context:
        consumer.offsets.update({0: 50, 1: 50})
        context.mark(0, 7)
    assert commits(consumer) == [(b'group', [OffsetCommitRequest(b'topic', 0, 8, None)])]
    assert consumer.offsets == {0: 8, 1: 50}


def test_without_a_mark_the_consumer_goes_back(consumer):
    with OffsetCommitContext(consumer):
        consumer.offsets.update({0: 50, 1: 50})
    assert commits(consumer) == []
    assert consumer.sought == [((0, 1), {0: 3, 1: 4})]


def test_after_an_exception_marks_do_not_count_and_it_is_passed_on(consumer):
    with pytest.raises(ZeroDivisionError), OffsetCommitContext(consumer) as context:
        consumer.offsets.update({0: 50, 1: 50})
        context.mark(0, 7)
        raise ZeroDivisionError
    assert commits(consumer) == []
    assert consumer.sought == [((0, 1), {0: 3, 1: 4})]


def test_an_offset_out_of_range_leads_to_the_beginning_and_is_swallowed(consumer):
    with OffsetCommitContext(consumer) as context:
        consumer.offsets.update({0: 50, 1: 50})
        context.mark(0, 7)
        raise OffsetOutOfRangeError
    assert commits(consumer) == []
    assert consumer.sought == [((0, 0), {0: 50, 1: 50})]


def test_the_class_of_an_exception_tells_how_the_block_ended(consumer):
    """Who calls __exit__() by itself need not have an instance."""
    context = OffsetCommitContext(consumer)
    context.mark(0, 5)
    assert context.__exit__(OffsetOutOfRangeError, None, None)
    assert consumer.sought[-1][0] == (0, 0)
    assert not context.__exit__(ValueError, None, None)
    assert consumer.sought[-1][0] == (0, 1)
    assert commits(consumer) == []


def test_the_offsets_may_have_become_another_dict(consumer):
    before = consumer.offsets
    with OffsetCommitContext(consumer) as context:
        consumer.offsets = {0: 50, 1: 50}
        context.mark(0, 7)
    assert consumer.offsets == {0: 8, 1: 50}
    assert before == {0: 3, 1: 4}


@pytest.mark.parametrize('answer', [None, [], (), iter([])])
def test_nothing_may_come_back_from_a_commit(consumer, answer):
    consumer.client.answers['send_offset_commit_request'] = [lambda *args: answer]
    with OffsetCommitContext(consumer) as context:
        context.mark(0, 7)
    assert consumer.offsets[0] == 8


def test_every_answer_to_a_commit_is_checked(consumer):
    answers = (
        OffsetCommitResponse(b'topic', partition, code) for partition, code in ((0, 0), (1, -1))
    )
    consumer.client.answers['send_offset_commit_request'] = [answers]
    with pytest.raises(UnknownError), OffsetCommitContext(consumer) as context:
        context.mark(0, 7)
    assert consumer.sought == []


def test_a_commit_that_fails_is_told(consumer):
    failed = FailedPayloadsError('payload')
    consumer.client.answers['send_offset_commit_request'] = [failed]
    with pytest.raises(FailedPayloadsError), OffsetCommitContext(consumer) as context:
        context.mark(0, 7)


def test_names_go_out_as_the_consumer_has_them(consumer):
    consumer.group, consumer.topic = 'group', object()
    with OffsetCommitContext(consumer) as context:
        context.mark(0, 7)
    assert commits(consumer) == [('group', [OffsetCommitRequest(consumer.topic, 0, 8, None)])]


def test_the_helpers_can_be_called_by_themselves(consumer):
    context = OffsetCommitContext(consumer)
    context.commit_partition_offsets({1: 20})
    assert commits(consumer) == [(b'group', [OffsetCommitRequest(b'topic', 1, 20, None)])]
    assert consumer.offsets == {0: 3, 1: 4}
    context.update_consumer_offsets({1: 20})
    assert consumer.sought == [((0, 1), {0: 3, 1: 20})]
    context.handle_out_of_range()
    assert consumer.sought[1][0] == (0, 0)


def test_log_lines_format_whatever_they_are_given(consumer, caplog):
    with caplog.at_level(logging.DEBUG), OffsetCommitContext(consumer) as context:
        context.mark('%s', 1)
        assert repr(context) == '<OffsetCommitContext consumer=%r marks=%r>' % (
            consumer,
            {'%s': 2},
        )
    with caplog.at_level(logging.DEBUG), OffsetCommitContext(consumer):
        raise OffsetOutOfRangeError
    assert 'out of range' in caplog.text


def test_with_a_simple_consumer_what_was_not_marked_is_handed_out_again():
    client = FakeClient((0, 5))
    consumer = SimpleConsumer(client, 'group', 'topic', auto_commit=False)
    consumer.provide_partition_info()
    with OffsetCommitContext(consumer) as context:
        for partition, message in consumer.get_messages(3)[:2]:
            context.mark(partition, message.offset)
    assert client.stored == {0: 2}
    with OffsetCommitContext(consumer):
        assert consumer.get_messages(1) == [(0, record(2))]
    assert consumer.get_messages(1) == [(0, record(2))]
