"""Assignors of all eras, those that programs write, and names, behind one call."""

from __future__ import annotations

import pytest

from kafka import config
from kafka.config.kinds import Unfit
from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor, RebalanceProtocol
from kafka.coordinator.assignors.adapt import (
    adapt_assignors,
    decode_assignment,
    decode_subscription,
)
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.coordinator.assignors.subscriptions import encode_assignment
from kafka.coordinator.protocol import (
    ConsumerProtocolMemberAssignment,
    ConsumerProtocolMemberMetadata,
)
from kafka.errors import IllegalStateError, KafkaConfigurationError, ProtocolError
from kafka.protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
)
from test.coordinator.assignors.groups import Cluster, member

CLUSTER = Cluster(t=2)


class Of12(AbstractPartitionAssignor):
    """As programs wrote them for 1.x: a class with class methods, one argument on_assignment."""

    name = 'of-1.2'
    version = 0
    told = None

    @classmethod
    def assign(cls, cluster, members):
        first = min(members)
        assert members[first].subscription == ['t']
        share = [('t', sorted(cluster.partitions_for_topic('t')))]
        assigned = {
            each: ConsumerProtocolMemberAssignment(cls.version, [], b'') for each in members
        }
        assigned[first] = ConsumerProtocolMemberAssignment(cls.version, share, b'seen')
        return assigned

    @classmethod
    def metadata(cls, topics):
        return ConsumerProtocolMemberMetadata(cls.version, list(topics), b'mine')

    @classmethod
    def on_assignment(cls, assignment):
        cls.told = assignment


class Of30(AbstractPartitionAssignor):
    """As for 3.0: objects, a list of members, generated messages, cooperative."""

    name = 'of-3.0'

    def supported_protocols(self):
        return [RebalanceProtocol.COOPERATIVE]

    def assign(self, cluster, members):
        last = members[-1]
        assert last.metadata.topics == ['t']
        share = [TopicPartition(topic='t', partitions=[0, 1])]
        return {last.member_id: ConsumerProtocolAssignment(assigned_partitions=share)}

    def metadata(self, topics):
        return ConsumerProtocolSubscription(topics=list(topics), user_data=b'mine')

    def on_assignment(self, assignment, generation):
        self.told = assignment.partitions(), generation


class Of23:
    """As for 2.x: methods of objects, no base class, told the generation by another call."""

    name = 'of-2.3'

    def __init__(self):
        self.told = []

    def assign(self, cluster, members):
        return {each: encode_assignment([]) for each in members}

    def metadata(self, topics):
        return ConsumerProtocolMemberMetadata(0, list(topics), None)

    def on_assignment(self, assignment):
        self.told.append(assignment.partitions())

    def on_generation_assignment(self, generation):
        self.told.append(generation)


def only(given):
    (assignor,) = adapt_assignors([given])
    return assignor


def shares(assignor, *members):
    encoded = assignor.assign(CLUSTER, {each.member_id: each for each in members})
    return {name: [tuple(p) for p in decode_assignment(each)] for name, each in encoded.items()}


# ------------------------------------------------------------ which


def test_nothing_means_range_then_roundrobin():
    for given in ((), [], iter(())):
        assert [each.name for each in adapt_assignors(given)] == ['range', 'roundrobin']


def test_assignors_have_names():
    names = ['range', 'roundrobin', 'sticky', 'cooperative-sticky']
    assert [each.name for each in adapt_assignors(names)] == names


@pytest.mark.parametrize('given', ['range', RangePartitionAssignor, RangePartitionAssignor()])
def test_one_alone_needs_no_list(given):
    assert [each.name for each in adapt_assignors(given)] == ['range']


def test_each_consumer_has_an_assignor_with_state_for_itself():
    one, two = only(StickyPartitionAssignor), only(StickyPartitionAssignor)
    one.on_assignment(encode_assignment([('t', 0)]), 1)
    assert one.subscription(['t']) != two.subscription(['t'])


@pytest.mark.parametrize(
    'given, complaint',
    [
        (['best'], "not 'best'"),
        ([object()], 'names .range, roundrobin'),
        ([None], 'not None'),
        (5, 'not 5'),
        (['range', RangePartitionAssignor], 'two assignors of one name: range, range'),
    ],
)
def test_what_is_no_assignor_is_refused(given, complaint):
    with pytest.raises(KafkaConfigurationError, match=complaint):
        adapt_assignors(given)


def test_a_class_that_cannot_be_made_is_refused():
    class Needy(Of30):
        def __init__(self, weight):
            pass

    with pytest.raises(KafkaConfigurationError, match='Needy cannot be made without arguments'):
        adapt_assignors([Needy])


def test_an_assignor_without_name_is_refused():
    class Nameless(Of23):
        name = None

    with pytest.raises(KafkaConfigurationError, match='has no name'):
        adapt_assignors([Nameless])


def test_a_consumer_is_cooperative_only_if_all_its_assignors_are():
    assert [each.is_cooperative for each in adapt_assignors([CooperativeStickyAssignor, Of30])] == [
        True,
        True,
    ]
    mixed = adapt_assignors(['range', 'cooperative-sticky'])
    assert [each.is_cooperative for each in mixed] == [False, False]
    assert not only(Of12).is_cooperative
    assert repr(only(Of30)) == '<Assignor of-3.0 cooperative>'


# ------------------------------------------------------------ joining


def test_an_eager_member_tells_topics_and_user_data():
    told = decode_subscription(only(Of12).subscription({'t'}, [('t', 0)], 5))
    assert (told.version, told.topics, told.user_data) == (0, ['t'], b'mine')
    assert (told.owned, told.generation, told.rack) == ([], -1, None)


def test_a_rack_is_told_by_whatever_assignor():
    told = decode_subscription(only(Of12).subscription({'t'}, rack='a'))
    assert (told.version, told.rack, told.user_data) == (3, 'a', b'mine')


def test_a_cooperative_member_tells_what_it_owns():
    """As the consumer knows it: a membership may have been lost since the last assignment."""
    assignor = only(CooperativeStickyAssignor)
    assignor.on_assignment(encode_assignment([('t', 0), ('t', 1)]), 4)
    told = decode_subscription(assignor.subscription({'t'}, [('t', 0)], 5))
    assert (told.owned, told.generation) == ([('t', 0)], 5)
    lost = decode_subscription(assignor.subscription({'t'}, [], -1))
    assert (lost.owned, lost.generation) == ([], -1)


def test_what_a_cooperative_one_is_made_of_for_3_0_is_told():
    told = decode_subscription(only(Of30).subscription({'t'}, [('t', 1)], 2))
    assert (told.topics, told.user_data, told.owned) == (['t'], b'mine', [('t', 1)])


# ------------------------------------------------------------ sharing


def test_an_assignor_of_1_x_shares():
    assignor = only(Of12)
    encoded = assignor.assign(CLUSTER, {'a': member('', 't'), 'b': member('', 't')})
    assert encoded['a'] == encode_assignment([('t', 0), ('t', 1)], b'seen')
    assert encoded['b'] == encode_assignment([])


def test_an_assignor_of_3_0_shares():
    got = shares(only(Of30), member('a', 't'), member('b', 't'))
    assert got == {'a': [], 'b': [('t', 0), ('t', 1)]}


def test_an_assignor_may_return_bytes():
    assert shares(only(Of23), member('a', 't')) == {'a': []}


def test_nobody_gets_what_another_one_owns_whoever_wrote_the_assignor():
    got = shares(only(Of30), member('a', 't', 't0', 1), member('b', 't', 't1', 1))
    assert got == {'a': [], 'b': [('t', 1)]}


def test_an_assignor_that_returns_nothing_is_told_by_its_name():
    class Forgetful(Of23):
        def assign(self, cluster, members):
            pass

    with pytest.raises(TypeError, match='of-2.3 has to return .*, not NoneType'):
        shares(only(Forgetful), member('a', 't'))


def test_a_stranger_gets_nothing():
    class Generous(Of23):
        def assign(self, cluster, members):
            return {'x': encode_assignment([('t', 0)])}

    with pytest.raises(IllegalStateError, match='of-2.3 gave partitions to x'):
        shares(only(Generous), member('a', 't'))


def test_instance_ids_reach_the_assignor():
    members = member('b', 't', group_instance_id='0'), member('a', 't', group_instance_id='1')
    assert shares(only('range'), *members) == {'b': [('t', 0)], 'a': [('t', 1)]}


# ------------------------------------------------------------ taking note


def test_an_assignor_of_1_x_is_told_its_assignment():
    only(Of12).on_assignment(encode_assignment([('t', 1)], b'x'), 3)
    assert Of12.told == ConsumerProtocolMemberAssignment(0, [('t', [1])], b'x')


def test_one_of_2_x_is_told_the_generation_by_another_call():
    made = Of23()
    only(made).on_assignment(encode_assignment([('t', 1)]), 3)
    assert made.told == [[('t', 1)], 3]


def test_one_of_3_0_is_told_the_generation_too():
    made = Of30()
    only(made).on_assignment(encode_assignment([('t', 1)]), 3)
    assert made.told == ([('t', 1)], 3)


def test_one_that_does_not_care_is_told_nothing():
    class Deaf:
        name = 'deaf'
        assign = metadata = print

    only(Deaf()).on_assignment(b'\x00', 3)


def test_an_assignment_that_cannot_be_read():
    with pytest.raises(ProtocolError, match='leader'):
        only('sticky').on_assignment(b'\x00', 3)


def test_the_option_takes_what_can_be_adapted():
    option = config.options_of(config.CONSUMER)['partition_assignment_strategy']
    given = ['range', 'roundrobin', 'sticky', 'cooperative-sticky']
    assert option.kind.convert(given) == given
    assert [each.name for each in adapt_assignors(given)] == given
    with pytest.raises(Unfit):
        option.kind.convert(['best'])
