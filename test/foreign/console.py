"""Kafka's own command-line tools, of two releases, as further foreign clients.

Owns how they are started and what they are asked. Their jars are those of servers/; what they write
and read is compared with what confluent-kafka reads and writes, a worker as the others.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
import zipfile
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from kafka.testing import Cluster
from servers.cluster import JVM
from servers.releases import Release, problem
from test.foreign.checking import Checks, Mismatch
from test.foreign.clients import CACHE, Missing
from test.foreign.plan import CODECS, stored_codecs

TOOL_SECONDS = 90
FETCH_SECONDS = 600
#: The oldest release that the tools of a release can reach, and why no older one.
OLDEST = {
    '2.8.2': ((0, 10), 'the Java client asks every broker for its versions'),
    '4.3.1': ((2, 1), 'the Java client of 4.x needs 2.1'),
}
MAIN_CLASSES = {
    'kafka-acls': 'org.apache.kafka.tools.AclCommand kafka.admin.AclCommand',
    'kafka-broker-api-versions': 'org.apache.kafka.tools.BrokerApiVersionsCommand'
    ' kafka.admin.BrokerApiVersionsCommand',
    'kafka-cluster': 'org.apache.kafka.tools.ClusterTool kafka.tools.ClusterTool',
    'kafka-configs': 'kafka.admin.ConfigCommand org.apache.kafka.tools.ConfigCommand',
    'kafka-console-consumer': 'org.apache.kafka.tools.consumer.ConsoleConsumer'
    ' kafka.tools.ConsoleConsumer',
    'kafka-console-producer': 'org.apache.kafka.tools.ConsoleProducer kafka.tools.ConsoleProducer',
    'kafka-consumer-groups': 'org.apache.kafka.tools.consumer.group.ConsumerGroupCommand'
    ' kafka.admin.ConsumerGroupCommand',
    'kafka-consumer-perf-test': 'org.apache.kafka.tools.ConsumerPerformance'
    ' kafka.tools.ConsumerPerformance',
    'kafka-delete-records': 'org.apache.kafka.tools.DeleteRecordsCommand'
    ' kafka.admin.DeleteRecordsCommand',
    'kafka-features': 'org.apache.kafka.tools.FeatureCommand',
    'kafka-get-offsets': 'org.apache.kafka.tools.GetOffsetShell kafka.tools.GetOffsetShell',
    'kafka-groups': 'org.apache.kafka.tools.GroupsCommand',
    'kafka-leader-election': 'org.apache.kafka.tools.LeaderElectionCommand'
    ' kafka.admin.LeaderElectionCommand',
    'kafka-log-dirs': 'org.apache.kafka.tools.LogDirsCommand kafka.admin.LogDirsCommand',
    'kafka-metadata-quorum': 'org.apache.kafka.tools.MetadataQuorumCommand',
    'kafka-producer-perf-test': 'org.apache.kafka.tools.ProducerPerformance',
    'kafka-reassign-partitions': 'org.apache.kafka.tools.reassign.ReassignPartitionsCommand'
    ' kafka.admin.ReassignPartitionsCommand',
    'kafka-console-share-consumer': 'org.apache.kafka.tools.consumer.ConsoleShareConsumer',
    'kafka-share-groups': 'org.apache.kafka.tools.consumer.group.ShareGroupCommand',
    'kafka-topics': 'org.apache.kafka.tools.TopicCommand kafka.admin.TopicCommand',
    'kafka-transactions': 'org.apache.kafka.tools.TransactionsCommand',
    'kafka-verifiable-consumer': 'org.apache.kafka.tools.VerifiableConsumer',
    'kafka-verifiable-producer': 'org.apache.kafka.tools.VerifiableProducer',
}


class Tools:
    """The tools of one release of Apache Kafka."""

    def __init__(self, release: Release) -> None:
        """Find the jars. Raises Missing."""
        why = problem(release)
        if why:
            raise Missing('the tools of %s: %s' % (release.name, why))
        self.release = release
        self._jars = [*sorted(release.libs.glob('*.jar')), *_left_out(release)]
        self._classes: Dict[str, Any] = {}
        self._has_archive = False

    @property
    def name(self) -> str:
        """What the table calls them."""
        return 'Kafka tools %s' % self.release.name

    def why_not(self, step: ToolStep, version: Tuple[int, ...]) -> str:
        """Return why they do not do a step on a release; empty if they do."""
        oldest, why = OLDEST[self.release.name]
        if not self.has(step.needs):
            return '%s is not among the jars' % step.needs
        if version < oldest:
            return why
        return 'needs %s' % '.'.join(map(str, step.since)) if version < step.since else ''

    def has(self, tool: str) -> bool:
        """Tell whether the jars hold a tool."""
        if tool not in self._classes:
            self._classes[tool] = self._find(MAIN_CLASSES[tool].split())
        return self._classes[tool] is not None

    def _find(self, names: List[str]) -> Optional[str]:
        """Return the first of some classes that is in the jars."""
        for jar in self._jars:
            if jar.name.startswith('kafka'):
                with zipfile.ZipFile(str(jar)) as content:
                    for name in names:
                        if name.replace('.', '/') + '.class' in content.NameToInfo:
                            return name
        return None

    def run(self, tool: str, *arguments: str, stdin: str = '') -> str:
        """Run a tool to its end and return what it printed. Raises Mismatch if it fails."""
        if not self.has(tool):
            raise Mismatch('%s is not in the jars of %s' % (tool, self.release.name))
        command = [*self._java(), self._classes[tool], *arguments]
        with tempfile.TemporaryDirectory() as folder:
            try:
                done = subprocess.run(
                    command,
                    cwd=folder,
                    input=stdin.encode(),
                    capture_output=True,
                    timeout=TOOL_SECONDS,
                )
            except subprocess.TimeoutExpired:
                raise Mismatch(
                    '%s did not end within %d s' % (_shown(tool, arguments), TOOL_SECONDS)
                ) from None
        self._has_archive = True
        out, err = done.stdout.decode(errors='replace'), done.stderr.decode(errors='replace')
        if done.returncode or 'Exception' in out + err:
            raise Mismatch(
                '%s: status %d, %s %s'
                % (_shown(tool, arguments), done.returncode, out[-600:], err[-600:])
            )
        return out

    def _java(self) -> List[str]:
        """Return the command up to the main class; the first one leaves an archive of classes."""
        archive = CACHE / ('tools-%s.jsa' % self.release.name)
        if not self._has_archive and archive.exists():
            archive.unlink()  # it may be of other jars
        verb = 'SharedArchiveFile' if archive.exists() else 'ArchiveClassesAtExit'
        resources = self.release.resources
        return [
            *['java', '-Xmx256m', '-XX:%s=%s' % (verb, archive), '-Xlog:disable', *JVM],
            '-Dlog.level=WARN',
            '-Dlog4j.configuration=file:%s' % (resources / 'log4j.properties'),
            '-Dlog4j2.configurationFile=%s' % (resources / 'log4j2.properties'),
            *['-cp', os.pathsep.join(map(str, self._jars))],
        ]


def _left_out(release: Release) -> List[Path]:
    """Fetch the jar of tools that the servers do not need, of a release that has one."""
    if (release.libs / ('kafka-tools-%s.jar' % release.name)).exists():
        return []
    folder = CACHE / 'jars'
    found = folder / ('kafka-tools-%s.jar' % release.name)
    maven = shutil.which('mvn')
    if not found.exists() and maven is not None:
        plugin = 'org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy'
        artifact = '-Dartifact=org.apache.kafka:kafka-tools:%s' % release.name
        command = [maven, '-q', '-B', plugin, artifact, '-DoutputDirectory=%s' % folder]
        subprocess.run(command, stdout=subprocess.DEVNULL, timeout=FETCH_SECONDS, check=False)
    return [found] if found.exists() else []


def _shown(tool: str, arguments: Tuple[str, ...]) -> str:
    return ' '.join([tool, *arguments])


class Visit:
    """One step of the tools on one cluster."""

    def __init__(
        self, tools: Tools, cluster: Cluster, topic: str, judge: Callable[..., Any]
    ) -> None:
        self.tools, self.cluster, self.topic, self.judge = tools, cluster, topic, judge
        self.checks = Checks()
        self.version = cluster.state.release.version
        self.is_later = tools.release.version >= (4,)

    def run(self, tool: str, *arguments: str, stdin: str = '') -> str:
        """Run a tool against the cluster."""
        given = ['--bootstrap-server', self.cluster.bootstrap, *arguments]
        return self.tools.run(tool, *given, stdin=stdin)

    def finds(self, what: str, text: str, *patterns: str) -> None:
        """Check that a text has all of some regular expressions in it."""
        for pattern in patterns:
            if not re.search(pattern, text):
                raise Mismatch('%s: expected /%s/ in:\n%s' % (what, pattern, text))
            self.checks.passed += 1

    def file(self, content: Any) -> str:
        """Return the name of a file that holds some JSON."""
        with tempfile.NamedTemporaryFile('w', suffix='.json', delete=False) as file:
            json.dump(content, file)
        return file.name

    def ends(self, partitions: int) -> List[int]:
        """Return where the logs end, by a look into the brokers."""
        logs = self.cluster.state.topics[self.topic].partitions
        return [logs[index].log.end_offset for index in range(partitions)]


# --- steps --------------------------------------------------------------------------------------


def topics(visit: Visit) -> None:
    """Create, list, describe, alter, delete."""
    name, tool = visit.topic, 'kafka-topics'
    create = ['--create', '--topic', name, '--partitions', '2', '--replication-factor', '3']
    done = visit.run(tool, *create, '--config', 'retention.ms=1234567')
    visit.finds('creating', done, 'Created topic %s' % name)
    visit.run(tool, *create, '--if-not-exists')
    visit.finds('the list', visit.run(tool, '--list'), '(?m)^%s$' % name)
    told = visit.run(tool, '--describe', '--topic', name)
    settings = '.*retention.ms=1234567' if visit.version >= (0, 11) else ''
    visit.finds('a topic', told, r'PartitionCount: ?2\s+ReplicationFactor: ?3' + settings)
    visit.finds('a topic', told, r'Partition: 1\s+Leader: \d\s+Replicas: \d,\d,\d\s+Isr: \d,\d,\d')
    if visit.version >= (1, 0):
        visit.run(tool, '--alter', '--topic', name, '--partitions', '5')
        told = visit.run(tool, '--describe', '--topic', name)
        visit.finds('a topic then', told, r'PartitionCount: ?5', 'Partition: 4')
    visit.run(tool, '--delete', '--topic', name)
    visit.checks.equal('the topic is there', name in visit.run(tool, '--list').split(), False)


def produce(visit: Visit) -> None:
    """Write with each codec."""
    for codec in CODECS:
        if codec == 'zstd' and visit.version < (2, 1):
            continue
        topic = '%s.%s' % (visit.topic, codec)
        visit.cluster.create_topic(topic, 1)
        lines = ['key %d\tvalue %d %s' % (number, number, 'x' * 100) for number in range(100)]
        done = visit.run(
            'kafka-console-producer',
            *['--topic', topic, '--property', 'parse.key=true', '--compression-codec', codec],
            stdin='\n'.join(lines) + '\n',
        )
        visit.checks.equal('what it says', 'ERROR' in done, False)
        expected = [[0, number, *line.split('\t')] for number, line in enumerate(lines)]
        found = visit.judge('dump', topic=topic, partitions=[0])
        visit.checks.records('records with %s' % codec, found, expected)
        visit.checks.equal('codec', stored_codecs(visit.cluster, topic), [codec])


def consume(visit: Visit) -> None:
    """Read what another client wrote with each codec, and go on from committed offsets."""
    visit.cluster.create_topic(visit.topic, 2)
    codecs = [each for each in CODECS if each != 'zstd' or visit.version >= (2, 1)]
    shown = []
    for codec in codecs:
        texts = [[n % 2, 'key %d' % n, '%s %d' % (codec, n)] for n in range(40)]
        visit.judge('fill', topic=visit.topic, texts=texts, codec=codec)
        shown += ['Partition:%d\t%s\t%s' % tuple(each) for each in texts]

    def read(group: str, count: int) -> List[str]:
        options = ['--from-beginning', '--group', group, '--max-messages', str(count)]
        for name in ('print.key', 'print.partition'):
            options += ['--property', '%s=true' % name]
        done = visit.run('kafka-console-consumer', '--topic', visit.topic, *options)
        return sorted(line for line in done.splitlines() if '\t' in line)

    first = read('group of ' + visit.topic, len(shown))
    visit.checks.records('records', [_by_place(line) for line in first], sorted(shown))
    visit.judge('fill', topic=visit.topic, texts=[[1, 'key', 'one more']], codec='none')
    rest = read('group of ' + visit.topic, 1)
    visit.checks.records(
        'the rest', [_by_place(line) for line in rest], ['Partition:1\tkey\tone more']
    )


def _by_place(line: str) -> str:
    """Return a line of the consoles with the partition in front, which 2.8 has behind."""
    parts = line.split('\t')
    parts.sort(key=lambda part: not part.startswith('Partition:'))
    return '\t'.join(parts)


def groups(visit: Visit) -> None:
    """List, describe, reset, delete."""
    name, tool = 'group-of-' + visit.topic, 'kafka-consumer-groups'
    visit.cluster.create_topic(visit.topic, 1)
    texts = [[0, None, str(number)] for number in range(10)]
    visit.judge('fill', topic=visit.topic, texts=texts, codec='none')
    visit.run(
        'kafka-console-consumer',
        *['--topic', visit.topic, '--from-beginning', '--group', name, '--max-messages', '10'],
    )
    visit.finds('the list', visit.run(tool, '--list'), '(?m)^%s$' % name)
    place = r'%s\s+%s\s+0\s+' % (name, visit.topic)
    told = visit.run(tool, '--describe', '--group', name)
    visit.finds('a group', told, place + r'10\s+10\s+0')
    visit.finds(
        'its state', visit.run(tool, '--describe', '--group', name, '--state'), name + '.*Empty'
    )
    where = ['--group', name, '--topic', visit.topic]
    told = visit.run(tool, '--reset-offsets', *where, '--shift-by', '-4', '--execute')
    visit.finds('moving it', told, place + '6')
    told = visit.run(tool, '--describe', '--group', name)
    visit.finds('a group then', told, place + r'6\s+10\s+4')
    if visit.version >= (2, 4):
        told = visit.run(tool, '--delete-offsets', *where)
        visit.finds('deleting offsets', told, r'%s\s+0\s+Successful' % visit.topic)
    if visit.version >= (1, 1):
        told = visit.run(tool, '--delete', '--group', name)
        visit.finds('deleting', told, 'successful')
        visit.checks.equal('it is there', name in visit.run(tool, '--list').split(), False)


def configs(visit: Visit) -> None:
    """Alter and describe topics, brokers, quotas and users."""
    tool = 'kafka-configs'
    visit.cluster.create_topic(visit.topic, 1)

    def alter(words: str, more: List[str]) -> str:
        return visit.run(tool, '--alter', *words.split(), *more)

    place = '--entity-type topics --entity-name ' + visit.topic
    alter(place, ['--add-config', 'retention.ms=7654321,cleanup.policy=[compact,delete]'])
    told = visit.run(tool, '--describe', *place.split())
    visit.finds('a topic', told, 'retention.ms=7654321', 'cleanup.policy=compact,delete')
    alter(place, ['--delete-config', 'retention.ms'])
    told = visit.run(tool, '--describe', *place.split())
    visit.checks.equal('it is there', 'retention.ms' in told, False)
    place = '--entity-type brokers --entity-name 1'
    alter(place, ['--add-config', 'log.cleaner.threads=2'])
    told = visit.run(tool, '--describe', *place.split())
    visit.finds('a broker', told, 'log.cleaner.threads=2')
    if visit.version >= (2, 6):
        place = '--entity-type clients --entity-name someone'
        alter(place, ['--add-config', 'producer_byte_rate=1024'])
        told = visit.run(tool, '--describe', *place.split())
        visit.finds('a quota', told, r'producer_byte_rate=1024')
    if visit.version >= (2, 7) and visit.version[:2] not in ((3, 3), (3, 4)):
        place = '--entity-type users --entity-name someone'
        alter(place, ['--add-config', 'SCRAM-SHA-256=[iterations=4096,password=secret]'])
        told = visit.run(tool, '--describe', *place.split())
        visit.finds('a user', told, r'SCRAM-SHA-256=iterations=4096')


def acls(visit: Visit) -> None:
    """Add, list, remove."""
    tool, principal = 'kafka-acls', 'User:someone'
    settings = {'authorizer': True, 'super_users': ('ANONYMOUS',)}
    with Cluster(1, visit.cluster.state.release.name, **settings) as guarded:

        def run(*arguments: str) -> str:
            return visit.tools.run(tool, '--bootstrap-server', guarded.bootstrap, *arguments)

        rule = ['--allow-principal', principal, '--operation', 'Read', '--topic', 'mine']
        run('--add', *rule)
        visit.finds('the list', run('--list'), 'name=mine, patternType=LITERAL', principal)
        told = run('--list', '--topic', 'mine')
        visit.finds('the list', told, 'operation=READ, permissionType=ALLOW')
        run('--remove', *rule, '--force')
        visit.checks.equal('it is there', principal in run('--list'), False)


def speed(visit: Visit) -> None:
    """Write and read a lot."""
    visit.cluster.create_topic(visit.topic, 2)
    if visit.tools.has('kafka-producer-perf-test'):
        done = visit.tools.run(
            'kafka-producer-perf-test',
            *['--topic', visit.topic, '--num-records', '5000', '--record-size', '100'],
            *['--throughput', '-1', '--producer-props', 'acks=all'],
            'bootstrap.servers=' + visit.cluster.bootstrap,
        )
        visit.finds('writing', done, '5000 records sent')
    else:
        texts = [[number % 2, None, 'x' * 100] for number in range(5000)]
        visit.judge('fill', topic=visit.topic, texts=texts, codec='none')
    visit.checks.equal('records', sum(visit.ends(2)), 5000)
    done = visit.run(
        'kafka-consumer-perf-test',
        *['--topic', visit.topic, '--messages', '5000', '--timeout', '30000'],
    )
    columns = done.strip().splitlines()[-1].split(', ')
    visit.checks.equal('records read', columns[4], '5000')


def offsets(visit: Visit) -> None:
    """Look up where logs begin and end, and move the beginning."""
    visit.cluster.create_topic(visit.topic, 2)
    texts = [[number % 2, None, str(number)] for number in range(20)]
    visit.judge('fill', topic=visit.topic, texts=texts, codec='none')
    servers = '--bootstrap-server' if visit.is_later else '--broker-list'

    def look(when: str) -> List[str]:
        given = [servers, visit.cluster.bootstrap, '--topic', visit.topic, '--time', when]
        return sorted(visit.tools.run('kafka-get-offsets', *given).split())

    def both(one: int, other: int) -> List[str]:
        return ['%s:0:%d' % (visit.topic, one), '%s:1:%d' % (visit.topic, other)]

    visit.checks.equal('ends', look('-1'), both(10, 10))
    visit.checks.equal('starts', look('-2'), both(0, 0))
    if visit.version < (0, 11):
        return
    wanted = [{'topic': visit.topic, 'partition': 1, 'offset': 4}]
    path = visit.file({'partitions': wanted, 'version': 1})
    try:
        told = visit.run('kafka-delete-records', '--offset-json-file', path)
    finally:
        Path(path).unlink()
    visit.finds('deleting records', told, r'%s-1\s+low_watermark: 4' % visit.topic)
    visit.checks.equal('starts then', look('-2'), both(0, 4))


def transactions(visit: Visit) -> None:
    """List, describe, and look for those that hang."""
    tool, name = 'kafka-transactions', 'id.' + visit.topic
    visit.cluster.create_topic(visit.topic, 1)
    visit.judge('transact', topic=visit.topic, name=name, texts=['one', 'two'])
    visit.finds('the list', visit.run(tool, 'list'), name + r'\s+\d\s+\d+\s+CompleteCommit')
    told = visit.run(tool, 'describe', '--transactional-id', name)
    visit.finds('a transaction', told, name, 'CompleteCommit')
    told = visit.run(tool, 'describe-producers', '--topic', visit.topic, '--partition', '0')
    visit.finds('a producer', told, r'(?m)^\d+\s+0\s+')
    visit.run(tool, 'find-hanging', '--broker-id', '0')


def verifiable(visit: Visit) -> None:
    """Write with acknowledgements told, and read."""
    visit.cluster.create_topic(visit.topic, 2)
    given = ['--topic', visit.topic, '--max-messages', '100']
    told = visit.run('kafka-verifiable-producer', *given)
    said = [json.loads(line) for line in told.splitlines() if line.startswith('{')]
    sent = [each for each in said if each['name'] == 'producer_send_success']
    found = visit.judge('dump', topic=visit.topic, partitions=[0, 1])
    expected = sorted([each['partition'], each['offset'], None, each['value']] for each in sent)
    visit.checks.equal('records', len(sent), 100)
    visit.checks.records('records', found, expected)
    told = visit.run('kafka-verifiable-consumer', *given, '--group-id', visit.topic)
    said = [json.loads(line) for line in told.splitlines() if line.startswith('{')]
    counts = [each['count'] for each in said if each['name'] == 'records_consumed']
    visit.checks.equal('records read', sum(counts), 100)


def share(visit: Visit) -> None:
    """Read in a share group; list, describe, delete it."""
    name, tool = 'share-of-' + visit.topic, 'kafka-share-groups'
    visit.cluster.create_topic(visit.topic, 2)
    texts = [[number % 2, None, 'value %d' % number] for number in range(20)]
    visit.judge('fill', topic=visit.topic, texts=texts, codec='none')
    group = ['--entity-type', 'groups', '--entity-name', name]
    add = ['--add-config', 'share.auto.offset.reset=earliest']
    visit.run('kafka-configs', '--alter', *group, *add)
    options = ['--topic', visit.topic, '--group', name, '--max-messages', '20']
    done = visit.run('kafka-console-share-consumer', *options)
    found = sorted(line for line in done.splitlines() if line.startswith('value'))
    visit.checks.records('records', found, sorted(text[2] for text in texts))
    visit.finds('the list', visit.run(tool, '--list'), '(?m)^%s$' % name)
    told = visit.run(tool, '--describe', '--group', name)
    visit.finds('a group', told, r'%s\s+%s\s+1\s+\d+\s+0' % (name, visit.topic))
    visit.finds('deleting', visit.run(tool, '--delete', '--group', name), 'successful')
    visit.checks.equal('it is there', name in visit.run(tool, '--list').split(), False)


def cluster_tools(visit: Visit) -> None:
    """Ask about brokers, and move replicas and leaders."""
    visit.cluster.create_topic(visit.topic, 1)
    told = visit.run('kafka-broker-api-versions')
    visit.finds('versions', told, r'id: 2 rack', r'Produce\(0\):', r'Metadata\(3\):')
    told = visit.tools.run(
        'kafka-cluster', 'cluster-id', '--bootstrap-server', visit.cluster.bootstrap
    )
    visit.finds('the cluster', told, visit.cluster.state.cluster_id)
    if visit.version >= (1, 0):
        told = visit.run('kafka-log-dirs', '--describe', '--topic-list', visit.topic)
        visit.finds('folders', told, '"partition":"%s-0"' % visit.topic)
    if visit.version >= (2, 4):
        _moves(visit)
    if visit.is_later and visit.version >= (3, 3):
        told = visit.run('kafka-features', 'describe')
        visit.finds('features', told, 'Feature: metadata.version')
        told = visit.run('kafka-metadata-quorum', 'describe', '--status')
        visit.finds('the quorum', told, 'LeaderId')
    if visit.is_later and visit.version >= (4, 0):
        visit.run('kafka-groups', '--list')


def _moves(visit: Visit) -> None:
    leader = visit.cluster.leader(visit.topic, 0)
    replicas = [node for node in (0, 1, 2) if node != leader]
    wanted = [{'topic': visit.topic, 'partition': 0, 'replicas': replicas}]
    path = visit.file({'partitions': wanted, 'version': 1})
    tool = 'kafka-reassign-partitions'
    try:
        told = visit.run(tool, '--reassignment-json-file', path, '--execute')
        visit.finds('moving', told, 'Successfully started')
        told = visit.run(tool, '--reassignment-json-file', path, '--verify')
        visit.finds('moving', told, 'Reassignment of partition %s-0 is complete' % visit.topic)
    finally:
        Path(path).unlink()
    visit.checks.equal('leader', visit.cluster.leader(visit.topic, 0), replicas[0])
    visit.cluster.move_leader(visit.topic, 0, replicas[1])
    place = ['--topic', visit.topic, '--partition', '0']
    told = visit.run('kafka-leader-election', '--election-type', 'preferred', *place)
    visit.finds('an election', told, 'Successfully completed leader election')
    visit.checks.equal('leader then', visit.cluster.leader(visit.topic, 0), replicas[0])


class ToolStep(NamedTuple):
    """A row of the table of the tools."""

    name: str
    do: Callable[[Visit], None]
    #: The oldest release that can do it.
    since: Tuple[int, ...]
    #: The tool without which there is nothing to do.
    needs: str


TOOL_STEPS = [
    ToolStep('kafka-topics', topics, (0, 11), 'kafka-topics'),
    ToolStep('kafka-console-producer', produce, (0, 10), 'kafka-console-producer'),
    ToolStep('kafka-console-consumer', consume, (0, 10), 'kafka-console-consumer'),
    ToolStep('kafka-consumer-groups', groups, (0, 11), 'kafka-consumer-groups'),
    ToolStep('kafka-configs', configs, (2, 3), 'kafka-configs'),
    ToolStep('kafka-acls', acls, (0, 11), 'kafka-acls'),
    ToolStep('perf-tests', speed, (0, 10), 'kafka-consumer-perf-test'),
    ToolStep('get-offsets, delete-records', offsets, (0, 10, 1), 'kafka-get-offsets'),
    ToolStep('kafka-transactions', transactions, (3, 0), 'kafka-transactions'),
    ToolStep('verifiable producer, consumer', verifiable, (0, 10), 'kafka-verifiable-producer'),
    ToolStep('share groups', share, (4, 2), 'kafka-console-share-consumer'),
    ToolStep('tools about brokers', cluster_tools, (0, 10, 1), 'kafka-broker-api-versions'),
]
