"""Runs the steps of clients on a cluster of each release, and keeps what came out.

Owns the loop and the results. A failed step is a result like any other: its client, its name, and
what was expected.
"""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Sequence, Union

from kafka.testing import Cluster
from kafka.testing.releases import broker_release
from test.foreign.checking import Mismatch
from test.foreign.clients import CACHE
from test.foreign.console import TOOL_STEPS, Tools, ToolStep, Visit
from test.foreign.plan import STEPS, Step, stored_codecs
from test.foreign.workers import Worker

BROKERS = 3
SETTINGS = {'group_consumer_heartbeat_interval_ms': 300, 'delete_topic_enable': True}


class Outcome(NamedTuple):
    """What one step of one client on one release came to."""

    client: str
    release: str
    step: str
    passed: int = 0
    failed: str = ''  # why
    absent: str = ''  # why

    def __str__(self) -> str:
        what = 'FAILED after %d checks: %s' % (self.passed, self.failed) if self.failed else ''
        what = what or ('absent: ' + self.absent if self.absent else '%d checks' % self.passed)
        return '%s on %s, %s: %s' % (self.client, self.release, self.step, what)


def run(
    clients: Sequence[Union[Worker, Tools]],
    judge: Worker,
    releases: Iterable[str],
    wanted: str,
    say: Callable[[str], None],
) -> List[Outcome]:
    """Run the steps whose names have ``wanted`` in them; tell each outcome as it comes.

    Arguments: judge: who writes what tools read, and reads what they write.
    """
    outcomes: List[Outcome] = []
    workers = [each for each in clients if isinstance(each, Worker)]
    for release in releases:
        with Cluster(BROKERS, release, **SETTINGS) as cluster:
            place = Place(cluster, release, workers, judge)
            for client in clients:
                steps = STEPS if isinstance(client, Worker) else TOOL_STEPS
                for step in steps:
                    if wanted not in step.name:
                        continue
                    began = time.monotonic()
                    cluster.forget_requests()
                    outcome = place.run(client, step)
                    if outcome.failed:
                        _keep_requests(cluster, outcome)
                    outcomes.append(outcome)
                    say('%s (%.1f s)' % (outcome, time.monotonic() - began))
    return outcomes


def _keep_requests(cluster: Cluster, outcome: Outcome) -> None:
    """Write down what brokers received in a step that failed."""
    with (CACHE / 'requests-of-failed-steps.txt').open('a') as file:
        file.write('\n%s\n' % (outcome,))
        for each in cluster.requests:
            shown = str(each.request)[:400]
            file.write(
                '%.3f node %d, connection %d, %s v%d of %s: %s\n'
                % (
                    each.at,
                    each.node,
                    each.connection,
                    each.api.name,
                    each.version,
                    each.client_id,
                    shown,
                )
            )


class Place:
    """A cluster, and the clients that are there."""

    def __init__(
        self, cluster: Cluster, release: str, workers: Sequence[Worker], judge: Worker
    ) -> None:
        self.cluster, self.workers, self.judge = cluster, workers, judge
        self.release = broker_release(release)
        self.told: Dict[str, Any] = {
            'bootstrap': cluster.bootstrap,
            'version': list(self.release.version),
            'release': release,
        }

    def run(self, client: Any, step: Any) -> Outcome:
        """Let a client do a step."""
        if isinstance(client, Tools):
            return self._run_tools(client, step)
        return self._run_worker(client, step)

    def _run_tools(self, tools: Tools, step: ToolStep) -> Outcome:
        outcome = Outcome(tools.name, self.release.name, step.name)
        absent = tools.why_not(step, self.release.version)
        if absent:
            return outcome._replace(absent=absent)

        def judge(verb: str, **how: Any) -> Any:
            answer = self.judge.ask(verb, self.told, **how)
            if 'failed' in answer:
                raise Mismatch('%s: %s' % (self.judge.client.name, answer['failed']))
            return answer['told']

        visit = Visit(tools, self.cluster, self._topic(step.name, tools.name), judge)
        try:
            step.do(visit)
        except (AssertionError, Mismatch) as error:
            return outcome._replace(passed=visit.checks.passed, failed=str(error))
        return outcome._replace(passed=visit.checks.passed)

    @staticmethod
    def _topic(*words: str) -> str:
        return '.'.join(words).replace(' ', '-').replace(',', '')

    def _run_worker(self, worker: Worker, step: Step) -> Outcome:
        """Let a client do a step, and the others read what it wrote."""
        client = worker.client
        outcome = Outcome(client.name, self.release.name, step.name)
        absent = self._absent(worker, step)
        if absent:
            return outcome._replace(absent=absent)
        topic = self._topic(step.name, client.name)
        how = dict(step.how)
        if step.source:
            how['source'] = topic + '.source'
            self.cluster.create_topic(how['source'], 1)
        if step.partitions:
            self.cluster.create_topic(topic, step.partitions)
        if step.is_guarded:
            return self._run_guarded(worker, outcome, topic)
        passed = 0
        try:
            with step.meanwhile(self.cluster, topic) as check:
                answer = worker.ask(step.verb, self.told, topic=topic, **how)
                passed += answer['passed']
                if 'failed' in answer:
                    return outcome._replace(passed=passed, failed=answer['failed'])
                passed += check()
            if step.codec:
                passed += self._check_written(worker, topic, step.codec)
        except AssertionError as error:
            return outcome._replace(passed=passed, failed=str(error))
        return outcome._replace(passed=passed)

    def _run_guarded(self, worker: Worker, outcome: Outcome, topic: str) -> Outcome:
        """Let a client log in, with a user who may not do everything."""
        mechanisms = ['PLAIN']
        if self.release.version >= (0, 10, 2):
            mechanisms += ['SCRAM-SHA-256', 'SCRAM-SHA-512']
        topics = {topic: 1, 'forbidden': 1}
        with Cluster(
            1,
            self.release.name,
            topics=topics,
            sasl={'someone': 'secret'},
            tls=True,
            authorizer=True,
        ) as guarded:
            guarded.allow('someone', 'All', topic=topic)
            guarded.allow('someone', 'All', group='*')
            told = {**self.told, 'bootstrap': guarded.bootstrap}
            how = {'topic': topic, 'mechanisms': mechanisms, 'ca': guarded.ca_file}
            answer = worker.ask('log_in', told, **how)
        return outcome._replace(passed=answer['passed'], failed=answer.get('failed', ''))

    def _absent(self, worker: Worker, step: Step) -> str:
        """Return why a client does not do a step on this release; empty if it does."""
        version, lacks = self.release.version, dict(worker.client.lacks)
        if step.name in lacks:
            return lacks[step.name]
        if version < worker.client.since:
            return worker.client.why_since
        return 'needs %s' % '.'.join(map(str, step.since)) if version < step.since else ''

    def _check_written(self, writer: Worker, topic: str, codec: str) -> int:
        """Check what is in the log, by looking and by the other clients. Raises AssertionError."""
        found = stored_codecs(self.cluster, topic)
        # librdkafka compresses no batch that would get longer, such as one of few records.
        if codec not in found or not set(found) <= {codec, 'none'}:
            raise AssertionError('records are stored with %s, not %s' % (found, codec))
        passed = 1
        for reader in self.workers:
            if reader is writer or self.release.version < reader.client.since:
                continue
            answer = reader.ask('read', self.told, topic=topic)
            passed += answer['passed']
            if 'failed' in answer:
                raise AssertionError('%s reads it: %s' % (reader.client.name, answer['failed']))
        return passed
