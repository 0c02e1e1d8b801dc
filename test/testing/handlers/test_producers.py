"""Who wrote to a partition; more of it is tested with transactions."""

from __future__ import annotations

from kafka.protocol.transaction import DescribeProducersRequest, TopicRequest
from kafka.testing import errors
from test.testing.drive import Driver


def test_followers_tell_of_producers_and_others_do_not():
    driver = Driver('4.4', brokers=3)
    driver.state.create_topic('t', assignments=[[0, 2]])
    asked = DescribeProducersRequest([TopicRequest('t', [0])])
    codes = [driver.ask(asked, node=n).topics[0].partitions[0].error_code for n in range(3)]
    assert codes == [errors.NONE, errors.NOT_LEADER_OR_FOLLOWER, errors.NONE]
