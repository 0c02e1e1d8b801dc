"""Whether a call is still running in this thread."""

from __future__ import annotations

import threading

from kafka.internals.running_calls import is_in_call


def call(mark, callback):
    return callback()


def test_it_is_running_for_what_it_calls():
    made = object()
    assert call(made, lambda: is_in_call('mark', made))
    assert not is_in_call('mark', made)


def test_another_call_of_the_same_function_is_another_one():
    made = object()
    assert not call(object(), lambda: is_in_call('mark', made))


def test_a_call_of_another_thread_does_not_count():
    made, answers = object(), []

    def ask():
        answers.append(is_in_call('mark', made))

    def wait():
        thread = threading.Thread(target=ask)
        thread.start()
        thread.join()

    call(made, wait)
    assert answers == [False]
