"""An idempotent producer against a model of a leader, with everything that can go wrong between.

The same producer twice: by hypothesis, which shrinks what it finds, and by many seeds, which go
further. A seed that fails repeats with ``walk(seed)``.
"""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kafka.producer.sequence_numbers import LAST_EPOCH, SEQUENCES
from test.producer.model_producer import APPLIED, NOT_APPLIED, Producer

FIRST = [0, SEQUENCES - 3]
EPOCHS = [0, LAST_EPOCH]
WHICH = st.integers(0, 3)


class Machine(RuleBasedStateMachine):
    """One rule for each thing that can happen."""

    @initialize(first=st.sampled_from(FIRST), epoch=st.sampled_from(EPOCHS))
    def begin(self, first, epoch):
        self.producer = Producer()
        self.producer.begin(first, epoch)

    @rule(count=st.integers(1, 4))
    def append(self, count):
        self.producer.append(count)

    @rule()
    def drain(self):
        self.producer.drain()

    @rule(which=WHICH)
    def serve(self, which):
        self.producer.serve(which)

    @rule(which=WHICH, code=st.sampled_from(NOT_APPLIED))
    def refuse_for_now(self, which, code):
        self.producer.serve(which, code, applies=False)

    @rule(which=WHICH, code=st.sampled_from(APPLIED))
    def apply_and_complain(self, which, code):
        self.producer.serve(which, code)

    @rule(which=WHICH)
    def receive(self, which):
        self.producer.receive(which)

    @rule()
    def move_leader(self):
        self.producer.move_leader()

    @rule(which=WHICH)
    def hang_up(self, which):
        self.producer.hang_up(which)

    @rule(which=WHICH)
    def arrive_late(self, which):
        self.producer.arrive_late(which)

    @rule(on_the_wire=st.booleans(), arrives=st.booleans())
    def expire(self, on_the_wire, arrives):
        self.producer.expire(on_the_wire, arrives)

    @rule(size=st.integers(1, 4))
    def allow_only_smaller_batches(self, size):
        self.producer.allow_only_smaller_batches(size)

    @rule()
    def break_a_rule_of_the_topic(self):
        self.producer.break_a_rule_of_the_topic()

    @invariant()
    def all_is_well(self):
        if hasattr(self, 'producer'):
            self.producer.check()

    def teardown(self):
        if hasattr(self, 'producer'):
            self.producer.come_to_an_end()


TestMachine = Machine.TestCase
TestMachine.settings = settings(
    max_examples=60,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)


def walk(seed, steps=120):
    """Let things happen by chance."""
    chance = random.Random(seed)
    producer = Producer()
    producer.begin(chance.choice(FIRST), chance.choice(EPOCHS))
    trouble = chance.choice([0.0, 0.3, 1.0])
    happenings = [
        (4.0, lambda: producer.append(chance.randint(1, 4))),
        (6.0, producer.drain),
        (4.0, lambda: producer.serve(chance.randrange(3))),
        (4.0, lambda: producer.receive(chance.randrange(3))),
        (trouble, lambda: producer.serve(0, chance.choice(NOT_APPLIED), applies=False)),
        (trouble, lambda: producer.serve(0, chance.choice(APPLIED))),
        (trouble, lambda: producer.hang_up(chance.randrange(3))),
        (trouble, lambda: producer.arrive_late(chance.randrange(3))),
        (trouble / 2, producer.move_leader),
        (trouble / 3, lambda: producer.expire(True, chance.random() < 0.5)),
        (trouble / 3, lambda: producer.expire(False, chance.random() < 0.5)),
        (trouble / 20, lambda: producer.allow_only_smaller_batches(chance.randint(1, 4))),
        (trouble / 5, producer.break_a_rule_of_the_topic),
    ]
    weights = [weight for weight, _ in happenings]
    for _ in range(steps):
        chance.choices(happenings, weights)[0][1]()
        producer.check()
    producer.come_to_an_end()


@pytest.mark.parametrize('hundred', range(4))
def test_seeds(hundred):
    for seed in range(100 * hundred, 100 * hundred + 100):
        try:
            walk(seed)
        except AssertionError as error:
            raise AssertionError('%s; repeat it by walk(%d)' % (error, seed)) from error
