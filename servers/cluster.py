"""Start, stop and break a cluster of real Apache Kafka brokers on 127.0.0.1.

Owns: the processes of a cluster (ZooKeeper or KRaft, one to three brokers), their ports, folder and
logs; readiness; topics; the release's command-line tools. Used by the integration tests, by
servers/run.py and by servers/start.py, so: standard library only. Does not own: the jars
(build_integration.sh), the settings (servers/<release>/resources).

Nothing outlives the program: each process is told to :mod:`servers.guard`, which kills what is left
when the program ends in whatever way. Only processes started here are ever signalled, by their id.
"""

from __future__ import annotations

import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Set

from servers import probe
from servers.brokers import HOST, Brokers, ClusterError, leader_in
from servers.releases import SERVERS, Release

RESUME_SECONDS = 20
TOOL_SECONDS = 120
CLUSTER_ID = 'a2Fma2EtZXZlcmdyZWVuLQ'  # KRaft wants a UUID in base64; every cluster here is its own
JVM = [
    '-XX:-UsePerfData',
    '-Djava.io.tmpdir=.',
    '--add-opens=java.base/java.lang=ALL-UNNAMED',  # snappy-java of 0.8.0 and 0.8.1 loads itself so
]
#: For what ends soon: a JVM that starts quickly and compiles with its first compiler only.
QUICK = ('-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1')
#: Heap and options of a broker in tests.
SMALL = ('-Xms64m', '-Xmx512m', *QUICK)
#: What Kafka's own start script gives a broker, for measurements. As it is known: the script is in
#: Kafka's archive, and not among the jars.
AS_SHIPPED = (
    '-Xms1g',
    '-Xmx1g',
    '-server',
    '-XX:+UseG1GC',
    '-XX:MaxGCPauseMillis=20',
    '-XX:InitiatingHeapOccupancyPercent=35',
    '-XX:+ExplicitGCInvokesConcurrent',
)
ZOOKEEPER_SESSION_SECONDS = (
    8  # zookeeper.session.timeout.ms and ZooKeeper's rounding up to its ticks
)
CREATES_TOPICS = (0, 10, 1)  # first release with the CreateTopics API


#: Tests do not wait for members that were killed: the session of groups of the next generation is
#: the coordinator's, not a client's. Unless other settings are given; older releases ignore these.
IMPATIENT = {
    'group.consumer.min.session.timeout.ms': '6000',
    'group.consumer.session.timeout.ms': '8000',
    'group.consumer.min.heartbeat.interval.ms': '500',
    'group.consumer.heartbeat.interval.ms': '1000',
}


class Process:
    """One JVM: the command, its log file, and whether it still runs."""

    def __init__(self, name: str, command: Sequence[str], folder: Path, log: Path) -> None:
        self.name = name
        self.log = log
        with log.open('wb') as output:
            self.popen = subprocess.Popen(
                command,
                cwd=str(folder),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for the program, which then stops it in order
            )

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self.popen.poll() is None

    def log_text(self) -> str:
        """Return all that it has printed so far."""
        return self.log.read_text(errors='replace')


class Cluster(Brokers):
    """Brokers of one release with node ids 0, 1, 2, alone in a temporary folder.

    ``settings`` are lines for server.properties that win over the templates, ``jvm`` the options of
    each broker's JVM. Use it as a context manager, or call :meth:`start` and :meth:`stop`.
    """

    def __init__(
        self,
        release: Release,
        brokers: int = 1,
        settings: Optional[Dict[str, str]] = None,
        jvm: Sequence[str] = SMALL,
    ) -> None:
        super().__init__(release, brokers)
        self.settings = dict(IMPATIENT if settings is None else settings)
        self.jvm = jvm
        self._own_ports: List[int] = []  # controllers' or ZooKeeper's
        self._folder: Optional[Path] = None
        self._guard: Optional[subprocess.Popen[bytes]] = None
        self._processes: List[Process] = []  # all that were started and not seen to end
        self._brokers: Dict[int, Process] = {}  # those of them that are brokers, by node id
        self._killed_at: Dict[int, float] = {}  # node id -> monotonic seconds
        self._starts = 0

    # -- life ------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start everything and wait until every broker knows every broker.

        ClusterError with the logs when that takes over 90 s or a process ends.
        """
        for attempts_left in (2, 1, 0):
            try:
                self._start()
                return
            except BaseException as error:
                self.stop()
                # Another program took a port between our look at it and the broker's bind.
                if attempts_left == 0 or 'Address already in use' not in str(error):
                    raise

    def _start(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix='kafka-%s-' % self.release.name))
        self._guard = subprocess.Popen(
            [sys.executable, '-S', '-E', str(SERVERS / 'guard.py'), str(self._folder)],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
        ports = free_ports(2 * self.size)
        self.ports, self._own_ports = ports[: self.size], ports[self.size :]
        for node in range(self.size):
            self._write('server-%d.properties' % node, self._server_properties(node))
        if self.release.has_zookeeper:
            self._write('zookeeper.properties', self._template('zookeeper.properties'))
            self._java(
                'zookeeper',
                # The folder goes with the cluster; to wait for a busy disk would cost seconds.
                ['-Xmx128m', *QUICK, '-Dzookeeper.forceSync=no'],
                'org.apache.zookeeper.server.quorum.QuorumPeerMain',
                'zookeeper.properties',
            )
            self._wait('ZooKeeper to listen', lambda: _listens(self._own_ports[0]))
        else:
            self._format()
        for node in range(self.size):
            self._start_broker(node)
        self.wait_ready()

    def _format(self) -> None:
        """Prepare each KRaft broker's folder, all at the same time: each is a JVM of its own."""
        formats = [
            self._java(
                'format-%d' % node,
                QUICK,
                'kafka.tools.StorageTool',
                'format',
                '-t',
                CLUSTER_ID,
                '-c',
                'server-%d.properties' % node,
            )
            for node in range(self.size)
        ]
        for process in formats:
            try:
                process.popen.wait(self.start_seconds)
            except subprocess.TimeoutExpired:
                raise ClusterError('StorageTool does not end\n' + self.logs()) from None
            if process.popen.returncode:
                raise ClusterError('StorageTool failed\n' + self.logs())
            self._forget(process)

    def _start_broker(self, node: int) -> None:
        self._starts += 1
        self._brokers[node] = self._java(
            'broker-%d.%d' % (node, self._starts),
            self.jvm,
            'kafka.Kafka',
            'server-%d.properties' % node,
        )

    def stop(self) -> None:
        """Kill what this cluster started and remove its folder. May be called at any time."""
        for process in self._processes:
            process.popen.kill()
        for process in list(self._processes):
            process.popen.wait()
            self._forget(process)
        if self._guard is not None and self._guard.stdin is not None:
            self._guard.stdin.close()  # it removes the folder
            self._guard.wait()
        self._brokers, self._guard, self.ports = {}, None, []

    def kill(self, node: int) -> None:
        """Kill one broker without warning, as a crash would."""
        process = self._brokers.pop(node)
        process.popen.kill()
        process.popen.wait()
        self._forget(process)
        self._killed_at[node] = time.monotonic()

    def pause(self, node: int) -> None:
        """Let one broker hang: it does nothing, and its connections stay. A kill still ends it."""
        self._brokers[node].popen.send_signal(signal.SIGSTOP)

    def resume(self, node: int) -> None:
        """Let a paused broker go on, and wait until the cluster knows it again.

        One whose session with ZooKeeper ended meanwhile may never enter itself again (0.10.0.1 does
        so now and then): it is restarted.
        """
        self._brokers[node].popen.send_signal(signal.SIGCONT)
        try:
            self.wait_ready(RESUME_SECONDS)
        except ClusterError:
            self.kill(node)
            self.restart(node)

    def restart(self, *nodes: int) -> None:
        """Start killed brokers again on their old ports and wait until the cluster knows them."""
        for node in nodes:
            if self.release.has_zookeeper:
                # 0.11 to 2.8 end at once while ZooKeeper still holds their old session.
                expired = self._killed_at[node] + ZOOKEEPER_SESSION_SECONDS
                time.sleep(max(0, expired - time.monotonic()))
            self._start_broker(node)
        if nodes:
            self.wait_ready()

    # -- what tests ask --------------------------------------------------------------------------

    @property
    def zookeeper(self) -> str:
        """ZooKeeper as ``host:port``, for the tools of old releases."""
        return '%s:%d' % (HOST, self._own_ports[0])

    @property
    def nodes(self) -> List[int]:
        """The ids of the brokers that were started and not killed."""
        return sorted(self._brokers)

    @property
    def process_ids(self) -> Set[int]:
        """The ids of the processes that run now."""
        return {process.popen.pid for process in self._processes}

    def segment(self, topic: str, partition: int, node: int = 0) -> Path:
        """The file in which a broker keeps the first records of a partition."""
        assert self._folder is not None
        log = '%s-%d' % (topic, partition)
        return self._folder / ('data-%d' % node) / log / ('%020d.log' % 0)

    def wait_ready(self, seconds: Optional[float] = None) -> None:
        """Wait until every running broker lists all running brokers (0.8: has said ``started``)."""
        self._wait('the brokers to be ready', lambda: all(map(self._is_ready, self.nodes)), seconds)

    def _is_ready(self, node: int) -> bool:
        # 0.8 lists no brokers before the first topic exists.
        if self.release.version < (0, 9):
            said = self._brokers[node].log_text().lower()  # 0.8.0: Started, then started
            return 'started (kafka.server.kafkaserver)' in said
        try:
            return sorted(probe.metadata(self.address(node)).brokers) == self.nodes
        except OSError:
            return False

    def create_topic(
        self,
        topic: str,
        partitions: int = 2,
        replication: Optional[int] = None,
        config: Optional[Dict[str, str]] = None,
    ) -> None:
        """Create a topic and wait until every running broker knows a leader of each partition.

        ``replication`` defaults to the number of brokers. ClusterError when it is refused; a topic
        of that name that is there already is not told from one that a busy broker made just now.
        """
        copies = replication or self.size
        if self.release.version >= CREATES_TOPICS:
            self._create_by_protocol(topic, partitions, copies, config or {})
        elif partitions == 2 and copies == self.size and not config:
            # Automatic creation makes the same; a tool costs a JVM.
            self._wait('topic ' + topic, lambda: self.metadata(topic))
        else:
            self._create_by_tool(topic, partitions, copies, config or {})
        self._wait('topic ' + topic, lambda: self._knows_leaders(topic, partitions))

    def _create_by_protocol(
        self, topic: str, partitions: int, copies: int, config: Dict[str, str]
    ) -> None:
        version = 2 if self.release.version >= (0, 11) else 0

        def made() -> bool:
            error = probe.NOT_CONTROLLER
            for node in self.nodes:  # with ZooKeeper only the controller does it
                if error == probe.NOT_CONTROLLER:
                    error = probe.create_topic(
                        self.address(node), topic, partitions, copies, config, version
                    )
            if error not in (0, *probe.MADE_LATER, *probe.NOT_READY):
                raise ClusterError('CreateTopics of %s: error %d' % (topic, error))
            return error not in probe.NOT_READY

        self._wait('topic %s to be created' % topic, made)

    def _create_by_tool(
        self, topic: str, partitions: int, copies: int, config: Dict[str, str]
    ) -> None:
        arguments = ['--zookeeper', self.zookeeper, '--topic', topic]
        if self.release.version < (0, 8, 1):
            command = 'kafka.admin.CreateTopicCommand'
            arguments += ['--partition', str(partitions), '--replica', str(copies)]
        else:
            command = 'kafka.admin.TopicCommand'
            arguments += ['--create', '--partitions', str(partitions)]
            arguments += ['--replication-factor', str(copies)]
            for name, value in config.items():
                arguments += ['--config', '%s=%s' % (name, value)]
        done = self.run_tool(command, *arguments)
        if done.returncode:
            raise ClusterError('%s failed: %r %r' % (command, done.stdout, done.stderr))

    def _knows_leaders(self, topic: str, partitions: int) -> bool:
        told = probe.Metadata({}, {})
        for node in self.nodes:
            told = probe.metadata(self.address(node), topic)
            if not all(leader_in(told, topic, index) in self.nodes for index in range(partitions)):
                return False
        # A KRaft broker shows a leader before that broker has opened the log.
        return self.release.has_zookeeper or not any(
            probe.log_end_error(self.address(leader_in(told, topic, index)), topic, index)
            for index in range(partitions)
        )

    def run_tool(
        self, main_class: str, *arguments: str, stdin: bytes = b'', seconds: float = TOOL_SECONDS
    ) -> subprocess.CompletedProcess[bytes]:
        """Run one of the release's own programs to its end; its log (WARN) is in ``stderr``.

        subprocess.TimeoutExpired, the program killed, when it takes longer than ``seconds``.
        """
        arguments = ('-cp', self.class_path, main_class, *arguments)
        return self.run_java(*arguments, stdin=stdin, seconds=seconds)

    def run_java(
        self, *arguments: str, stdin: bytes = b'', seconds: float = TOOL_SECONDS
    ) -> subprocess.CompletedProcess[bytes]:
        """Run ``java`` with these arguments in the cluster's folder; as :meth:`run_tool`."""
        return subprocess.run(
            ['java', '-Xmx256m', *QUICK, *JVM, *self._logging('WARN'), *arguments],
            cwd=str(self._folder),
            input=stdin,
            capture_output=True,
            timeout=seconds,
            check=False,
        )

    @property
    def class_path(self) -> str:
        """The release's jars as ``java -cp`` takes them."""
        return str(self.release.libs / '*')

    def logs(self, lines: int = 40) -> str:
        """Return the last ``lines`` of each process's log."""
        parts = []
        for process in self._processes:
            state = 'running' if process.running else 'ended: %s' % process.popen.returncode
            tail = '\n'.join(process.log_text().splitlines()[-lines:])
            parts.append('--- %s %s (%s)\n%s' % (self.release.name, process.name, state, tail))
        return '\n'.join(parts)

    # -- helpers ---------------------------------------------------------------------------------

    def _ended(self) -> List[str]:
        return [process.name for process in self._processes if not process.running]

    def _java(self, name: str, options: Sequence[str], main_class: str, *arguments: str) -> Process:
        assert self._folder is not None
        command = ['java', *options, *JVM, *self._logging('INFO'), '-cp', self.class_path]
        command += [main_class, *arguments]
        process = Process(name, command, self._folder, self._folder / (name + '.log'))
        self._processes.append(process)
        self._tell_guard('+%d' % process.popen.pid)
        return process

    def _forget(self, process: Process) -> None:
        """Note the end of a process: its id may be given to another from now on."""
        self._processes.remove(process)
        self._tell_guard('-%d' % process.popen.pid)

    def _logging(self, level: str) -> List[str]:
        return [
            '-Dlog.level=' + level,
            '-Dlog4j.configuration=file:%s' % (self.release.resources / 'log4j.properties'),
            '-Dlog4j2.configurationFile=%s' % (self.release.resources / 'log4j2.properties'),
        ]

    def _tell_guard(self, line: str) -> None:
        assert self._guard is not None and self._guard.stdin is not None
        try:
            self._guard.stdin.write(line.encode() + b'\n')
            self._guard.stdin.flush()
        except BrokenPipeError:
            pass  # somebody killed the guard: the orderly stop does without it

    def _server_properties(self, node: int) -> str:
        text = self._template('server.properties', node) + self._template('common.properties', node)
        return text + ''.join('%s=%s\n' % item for item in self.settings.items())

    def _template(self, name: str, node: int = 0) -> str:
        own = self._own_ports
        values = {
            'folder': str(self._folder),
            'node_id': node,
            'brokers': self.size,
            'port': self.ports[node],
            'controller_port': own[node],
            'zookeeper_port': own[0],
            'voters': ','.join('%d@%s:%d' % (i, HOST, port) for i, port in enumerate(own)),
        }
        text = (self.release.resources / name).read_text()
        for word, value in values.items():
            text = text.replace('{%s}' % word, str(value))
        return text

    def _write(self, name: str, text: str) -> None:
        assert self._folder is not None
        (self._folder / name).write_text(text)


def free_ports(count: int) -> List[int]:
    """Return ports of 127.0.0.1 that nothing listens on, below those that the kernel gives out.

    A port from the kernel's own range could be taken by any connection before the broker binds it.
    """
    found: List[int] = []
    while len(found) < count:
        port = random.randrange(15000, 32000)
        with socket.socket() as attempt:
            try:
                attempt.bind((HOST, port))
            except OSError:
                continue
        if port not in found:
            found.append(port)
    return found


def _listens(port: int) -> bool:
    with socket.socket() as attempt:
        attempt.settimeout(1)
        return attempt.connect_ex((HOST, port)) == 0


def stop_on_signals() -> None:
    """Make SIGTERM and SIGHUP end the program as Ctrl-C does: with its clean-up."""

    def end(number: int, _: Any) -> None:
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, end)
    if hasattr(signal, 'SIGHUP'):  # Windows has none
        signal.signal(signal.SIGHUP, end)
