"""Any history of classic groups: no move is illegal, nobody is answered twice, nothing is left."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from kafka.testing.groups.group_members import JoinCall
from kafka.testing.groups.group_states import GroupState

from .drive import Driver
from .group_requests import heartbeat, join, sync

VERSIONS = ['0.9', '0.10.2', '2.3', '2.8', '4.4']
PROTOCOLS = [{'range': b''}, {'range': b'x'}, {'sticky': b'', 'range': b''}, {'sticky': b''}]

STEPS = st.lists(
    st.tuples(
        st.sampled_from(['join', 'join', 'sync', 'sync', 'beat', 'leave', 'commit', 'wait']),
        st.integers(0, 3),  # which member
        st.integers(0, 3),  # which protocols, or how long
    ),
    max_size=40,
)


class Actor:
    """A member that keeps what it is told."""

    def __init__(self, groups, instance, version):
        self.groups = groups
        self.instance = instance
        self.version = version
        self.member_id = ''
        self.generation = -1

    @property
    def named(self):
        return {} if self.instance is None else {'group_instance_id': self.instance}

    def reply_once(self, take):
        """Return what takes one answer and no second."""
        answers = []

        def reply(message):
            assert not answers
            answers.append(message)
            take(message)

        return reply

    def join(self, choice):
        def take(message):
            if message.error_code == 25:
                self.member_id = ''
            elif message.member_id:
                self.member_id = message.member_id
            if not message.error_code:
                self.generation = message.generation_id

        request = join(self.member_id, protocols=dict(PROTOCOLS[choice]), **self.named)
        self.groups.join(JoinCall(request, self.version, 'c', '/h', self.reply_once(take)))

    def sync(self, choice):
        request = sync(self.member_id, self.generation, {self.member_id: b'mine'}, **self.named)
        self.groups.sync(request, self.reply_once(lambda message: None))

    def beat(self, choice):
        self.groups.heartbeat(heartbeat(self.member_id, self.generation, **self.named))

    def leave(self, choice):
        self.groups.leave('g', self.member_id, self.instance)

    def commit(self, choice):
        self.groups.check_commit('g', self.generation, self.member_id, self.instance)


def check(group):
    """Assert what is always true of a group."""
    if group is None:
        return
    waiting = [each for each in group.members.values() if each.joining]
    if group.state is GroupState.EMPTY:
        assert not group.members
    if group.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
        assert group.leader_id in group.members
        assert group.protocol_name is not None
        assert not waiting
    if group.state is GroupState.STABLE:
        assert not [each for each in group.members.values() if each.syncing]


@settings(deadline=None, max_examples=300)
@given(st.sampled_from(VERSIONS), st.sampled_from([0, 3000]), st.booleans(), STEPS)
def test_any_history_ends_with_nothing(version, delay_ms, static, steps):
    driver = Driver(version, group_initial_rebalance_delay_ms=delay_ms, group_max_size=3)
    groups = driver.state.groups
    named = static and version in ('2.3', '2.8', '4.4')
    best = driver.state.release.served[11][1]
    # The second two share an instance: one fences the other.
    instances = [None, None, 'one', 'one'] if named else [None] * 4
    actors = [Actor(groups, instance, best) for instance in instances]
    for step, who, choice in steps:
        if step == 'wait':
            driver.advance([0.5, 4, 11, 61][choice])
        else:
            getattr(actors[who], step)(choice)
        check(groups.get('g'))
    driver.advance(2 * 3600)
    assert groups.get('g') is None
    assert groups.budget.used == 0
    assert driver.timers.next_time() is None
