"""The parts of the differential test: the script's requests, shown answers, the comparer."""

from __future__ import annotations

import pytest

from kafka.protocol.api import request_class, response_class
from kafka.protocol.group import JoinGroupResponse
from kafka.protocol.metadata import MetadataRequest, MetadataResponse
from kafka.protocol.produce import ProduceResponse
from kafka.testing.releases import RELEASES, TELEMETRY, broker_release
from test.differential import recordings, report
from test.differential.answers import Names, plain
from test.differential.compare import ABSENT, Difference, compare, explained
from test.differential.deviations import DEVIATIONS, Deviation
from test.differential.records import (
    AGE_MS,
    made,
    shown,
    shown_time,
    with_attributes,
    with_field,
    with_wrong_crc,
)
from test.differential.runner import error_codes
from test.differential.script import (
    Scenario,
    Step,
    build,
    cases,
    cases_named,
    chosen_versions,
    end_cases,
    one,
)

BASE_MS = 1_700_000_000_000
QUORUM = 'topics[__cluster_metadata].partitions[0].'
FACTOR = 'results[4 0].configs[default.replication.factor].'


def entry(answer):
    return {'outcome': 'answer', 'answer': answer}


def found(real, ours):
    """Return path, real and embedded value of each difference."""
    differences = compare({'a/b': entry(real)}, {'a/b': entry(ours)})
    return [(each.path, each.real, each.ours) for each in differences]


# ---------------------------------------------------------------- comparing


def test_equal_answers_have_no_difference():
    assert found({'a': [1, {'name': 'x'}]}, {'a': [1, {'name': 'x'}]}) == []


def test_a_difference_names_the_field():
    assert found(
        {'topics': [{'name': 't', 'error_code': 3}]}, {'topics': [{'name': 't', 'error_code': 0}]}
    ) == [('topics[t].error_code', 3, 0)]


def test_the_order_of_named_elements_does_not_matter():
    first, second = {'name': 'a', 'n': 1}, {'name': 'b', 'n': 2}
    assert found({'topics': [first, second]}, {'topics': [second, first]}) == []


def test_an_element_that_is_missing_is_absent():
    assert found({'topics': [{'name': 'a'}]}, {'topics': []}) == [
        ('topics[a]', {'name': 'a'}, ABSENT)
    ]


def test_elements_of_one_name_are_compared_in_order():
    real = {'topics': [{'name': 'a', 'n': 1}, {'name': 'a', 'n': 2}]}
    ours = {'topics': [{'name': 'a', 'n': 1}, {'name': 'a', 'n': 3}]}
    assert found(real, ours) == [("topics[a'].n", 2, 3)]


def test_the_order_of_plain_lists_does_not_matter():
    assert found({'isr_nodes': [2, 1]}, {'isr_nodes': [1, 2]}) == []


def test_the_order_of_records_matters():
    records = [[0, 'base+0', None, 'a', []], [1, 'base+1', None, 'b', []]]
    assert found({'records': records}, {'records': records[::-1]})


def test_null_is_not_an_empty_list():
    assert found({'records': None}, {'records': []}) == [('records', None, [])]


def test_texts_of_errors_are_only_said_or_not():
    assert found({'error_message': 'one'}, {'error_message': 'other'}) == []
    assert found({'error_message': 'one'}, {'error_message': None}) == [
        ('error_message', '<text>', None)
    ]


def test_another_outcome_is_a_difference():
    real, ours = {'a/b': {'outcome': 'closed'}}, {'a/b': entry({})}
    assert [(d.path, d.real, d.ours) for d in compare(real, ours)] == [
        ('outcome', 'closed', 'answer')
    ]


def test_a_step_that_only_one_side_has_is_a_difference():
    assert [d.ours for d in compare({'a/b': entry({})}, {})] == [ABSENT]
    assert [d.real for d in compare({}, {'a/b': entry({})})] == [ABSENT]


# ---------------------------------------------------------------- deviations


def test_a_deviation_explains_what_its_expressions_match_whole():
    deviation = Deviation('case-.*', 'topics.*error_code', 'why')
    assert explained(Difference('case-1', 'topics[t].error_code', 1, 2), (2, 8), [deviation])
    assert not explained(Difference('case-1', 'topics[t].name', 1, 2), (2, 8), [deviation])
    assert not explained(Difference('a case-1', 'topics[t].error_code', 1, 2), (2, 8), [deviation])


def test_a_deviation_is_about_its_releases_only():
    deviation = Deviation('.*', '.*', 'why', since=(2, 0), until=(3, 9))
    difference = Difference('a', 'b', 1, 2)
    assert [explained(difference, v, [deviation]) for v in ((1, 1), (2, 8), (4, 0))] == [
        False,
        True,
        False,
    ]


@pytest.mark.parametrize(
    'where, path, real, ours',
    [
        ('null-records-0-v9/ask', 'outcome', 'answer', 'closed'),
        ('null-records-0-v9/ask', 'outcome', 'answer', 'silent'),
        ('malformed-3-v9/produce negative bytes', 'outcome', 'closed', 'silent'),
        ('quorum-of-other-55-v0/ask', 'topics[other].partitions[0].leader_epoch', 0, 1),
        ('quorum-55-v0/ask', QUORUM + 'leader_epoch', 6, 0),
        ('quorum-55-v0/ask', QUORUM + 'high_watermark', 6, '<absent>'),
        ('describe-configs-32-v1/of the broker', FACTOR + 'value', '1', '3'),
        ('describe-configs-32-v1/of the broker', FACTOR + 'config_source', 5, 4),
        ('describe-configs-32-v1/of the broker', FACTOR + 'config_source', 4, 1),
        ('describe-configs-32-v1/of all brokers', FACTOR + 'config_source', 4, 5),
    ],
)
def test_deviations_excuse_no_more_than_their_reason(where, path, real, ours):
    for version in (1, 1), (2, 8), (4, 4):
        assert not explained(Difference(where, path, real, ours), version, DEVIATIONS)


def test_every_deviation_has_a_reason():
    assert all(len(deviation.reason) > 20 for deviation in DEVIATIONS)


# ---------------------------------------------------------------- scripts


def test_a_step_walks_the_versions_that_are_served():
    release = broker_release('2.8')
    walked = [case.version for case in cases([one('x', 3, lambda c: {})], release)]
    assert walked == list(range(12))


def test_ends_are_the_first_and_the_last_version_of_each_scenario_and_api():
    release = broker_release('2.8')
    asked = [one('all', 3, lambda c: {}), one('some', 3, lambda c: {}, versions='5-7')]
    asked.append(one('refused', 3, lambda c: {}, versions='above'))
    asked.append(one('slow', 3, lambda c: {})._replace(is_slow=True))
    walked = [case.label for case in end_cases(asked, release)]
    assert walked == [
        'all-3-v0',
        'all-3-v11',
        'some-3-v5',
        'some-3-v7',
        'refused-3-v12',
        'slow-3-v11',
    ]


def test_every_scenario_and_api_is_among_the_ends():
    for name in ('0.9', '2.8', '4.4'):
        release = broker_release(name)
        whole, ends = (
            {(case.scenario.name, case.api) for case in choose(recordings.ALL, release)}
            for choose in (cases, end_cases)
        )
        assert whole == ends


def test_cases_are_chosen_by_parts_of_their_names():
    asked = [one('ab', 3, lambda c: {}), one('cd', 3, lambda c: {}), one('ef', 3, lambda c: {})]
    chosen = cases_named('b-3-v1,cd-3-v2')(asked, broker_release('1.0'))
    assert [case.label for case in chosen] == ['ab-3-v1', 'cd-3-v2']


def test_versions_are_narrowed():
    release = broker_release('4.4')
    assert chosen_versions('5-7', 3, release) == [5, 6, 7]
    assert chosen_versions('12+', 3, release) == [12, 13]
    assert chosen_versions('high', 3, release) == [13]
    assert chosen_versions('above', 3, release) == [14]
    assert chosen_versions('below', 1, release) == [3]
    assert chosen_versions('below', 3, release) == []


def test_a_scenario_keeps_to_its_releases():
    scenario = one('x', 3, lambda c: {}, since=(0, 10), until=(2, 8))
    counts = [
        bool(list(cases([scenario], broker_release(v)))) for v in ('0.9', '0.10.0', '2.8', '3.0')
    ]
    assert counts == [False, True, True, False]


def test_a_request_leaves_out_what_its_version_lacks():
    asked = {'topics': [{'name': 't', 'topic_id': bytes(16)}], 'allow_auto_topic_creation': False}
    old = build(MetadataRequest, asked, 1)
    assert MetadataRequest.decode(old.encode(1), 1).topics[0].name == 't'
    assert build(MetadataRequest, asked, 4).allow_auto_topic_creation is False


def test_a_request_with_an_unknown_name_is_refused():
    with pytest.raises(TypeError, match='no_such'):
        build(MetadataRequest, {'no_such': 1}, 1)


def test_the_script_is_several_hundred_requests_for_every_release():
    for name in RELEASES[3:]:
        steps = sum(
            len(case.scenario.steps) for case in cases(recordings.ALL, broker_release(name))
        )
        assert steps > 500, name


def test_an_answer_that_is_left_is_read_on_the_same_connection():
    for scenario in recordings.ALL:
        waits = set()
        for step in scenario.steps:
            if step.left:
                assert step.wire not in waits, (scenario.name, step.name)
                waits.add(step.wire)
            elif step.wire in waits:
                assert step.fields is None, (scenario.name, step.name)
                waits.remove(step.wire)
            else:
                assert step.fields or step.frame, (scenario.name, step.name)
        assert not waits, scenario.name


def test_names_of_cases_and_steps_are_unique():
    for name in ('0.9', '2.8', '4.4'):
        labels = [case.label for case in cases(recordings.ALL, broker_release(name))]
        assert len(set(labels)) == len(labels)
    for scenario in recordings.ALL:
        names = [step.name for step in scenario.steps]
        assert len(set(names)) == len(names), scenario.name


def test_every_api_that_clients_send_is_asked():
    apis = {step.api for scenario in recordings.ALL for step in scenario.steps}
    asked = apis | {api for scenario in recordings.ALL for api in scenario.walks}
    assert not asked & set(report.NOT_ASKED)
    for name in RELEASES:
        assert set(broker_release(name).served) <= asked, name
    assert set(TELEMETRY) == set(report.NOT_ASKED)


def test_steps_are_of_apis_that_exist():
    for scenario in recordings.ALL:
        for step in scenario.steps:
            assert isinstance(scenario, Scenario)
            assert isinstance(step, Step)
            assert request_class(step.api)
            assert response_class(step.api)


# ---------------------------------------------------------------- answers


def test_ids_places_and_times_have_one_name():
    answer = MetadataResponse(
        brokers=[], cluster_id='abc', controller_id=0, topics=[], throttle_time_ms=5
    )
    assert plain(answer, 8, BASE_MS)['cluster_id'] == '<id>'
    assert 'throttle_time_ms' not in plain(answer, 8, BASE_MS)


def test_no_id_stays_what_it_is():
    answer = MetadataResponse(brokers=[], cluster_id=None, controller_id=0, topics=[])
    assert plain(answer, 8, BASE_MS)['cluster_id'] is None


def test_ids_have_the_numbers_in_which_they_appear():
    names = Names({b'i' * 16: 't'})
    assert [names.numbered('producer', each) for each in (70, 71, 70)] == [
        '<producer 1>',
        '<producer 2>',
        '<producer 1>',
    ]
    assert names.topic(b'i' * 16) == '<id of t>'
    assert names.topic(b'j' * 16) == '<id>'


def test_a_member_keeps_what_stands_before_its_id():
    names = Names()
    made_up = '123e4567-e89b-42d3-a456-426614174000'
    assert names.member('client-' + made_up) == 'client-<member 1>'
    assert names.member('AAAAAAAAAAAAAAAAAAAAAQ') == '<member 2>'


def test_a_leader_is_the_member_that_it_is():
    answer = JoinGroupResponse(
        error_code=0, generation_id=1, protocol_name='', leader='a', member_id='b', members=[]
    )
    shown_answer = plain(answer, 0, BASE_MS)
    assert shown_answer['leader'] != shown_answer['member_id']


def test_fields_of_other_versions_are_left_out():
    answer = ProduceResponse(responses=[])
    assert plain(answer, 0, BASE_MS) == {'responses': []}


def test_error_codes_are_found_anywhere():
    assert error_codes({'error_code': 3, 'topics': [{'error_code': 51, 'x': 1}]}) == [3, 51]


# ---------------------------------------------------------------- records


@pytest.mark.parametrize('magic', [0, 1])
def test_messages_are_shown_one_by_one(magic):
    first, second = shown(made(magic, BASE_MS), BASE_MS)
    assert (first['offset'], first['value'], second['value']) == (0, 'one', 'two')
    assert first.get('timestamp') == ('base+0' if magic else None)


@pytest.mark.parametrize('codec', [0, 1, 2, 3])
@pytest.mark.parametrize('magic', [0, 1])
def test_wrappers_are_shown_with_what_they_hold(magic, codec):
    found = shown(made(magic, BASE_MS, codec=codec), BASE_MS)
    values = [each[3] for each in found[0]['inside']] if codec else [m['value'] for m in found]
    assert values == ['one', 'two']


def test_batches_are_shown_with_their_records():
    (batch,) = shown(made(2, BASE_MS, codec=1), BASE_MS)
    assert batch['attributes'] == 1
    assert batch['records'][1] == [1, 'base+1', 'k', 'two', [['h', 'x']]]


def test_a_wrong_checksum_is_shown():
    (message,) = shown(with_wrong_crc(made(0, BASE_MS, values=[b'one'])), BASE_MS)
    assert message['crc'] == 'wrong'


def test_changed_batches_keep_a_right_checksum():
    batch = made(2, BASE_MS)
    changed = shown(with_field(batch, 'i', 23, 5), BASE_MS)[0]
    assert (changed['last_offset_delta'], changed['crc']) == (5, 'right')
    assert shown(with_attributes(batch, 8), BASE_MS)[0]['attributes'] == 8


def test_what_is_cut_off_is_counted():
    data = made(2, BASE_MS)
    assert shown(data[:-5], BASE_MS) == [{'cut_off_bytes': len(data) - 5}]


def test_times_of_now_are_not_told_apart():
    now = BASE_MS + AGE_MS
    one_time, other = (shown(made(1, now + i, values=[b'v']), BASE_MS) for i in (0, 5))
    assert one_time == other
    assert one_time[0]['timestamp'] == '<now+0h>'


def test_other_times_are_told_apart_by_the_hour():
    hour = 3_600_000
    now = BASE_MS + AGE_MS
    assert [shown_time(now + hours * hour, BASE_MS) for hours in (-2, 1, 168)] == [
        '<now-2h>',
        '<now+1h>',
        '<now+168h>',
    ]
    assert [shown_time(value, BASE_MS) for value in (-1, 0, 7, 2**63 - 1)] == [-1, 0, 7, 2**63 - 1]


# ---------------------------------------------------------------- files


def test_a_recording_is_read_as_it_was_written(tmp_path):
    recording = {'a/b': entry({'x': [1, None]})}
    recordings.write(tmp_path / 'r.json.gz', recording)
    assert recordings.read(tmp_path / 'r.json.gz') == recording


@pytest.mark.parametrize('release', recordings.all_kept())
def test_everything_could_be_asked_of_real_releases(release):
    kept = recordings.read(recordings.kept(release))
    assert not [name for name, each in kept.items() if each['outcome'].startswith('not asked')]


def test_kept_recordings_are_small():
    for path in recordings.FOLDER.glob('*.json.gz'):
        assert path.stat().st_size < 300_000, path.name


@pytest.mark.parametrize('path', sorted(recordings.FOLDER.glob('*.json.gz')), ids=lambda p: p.name)
def test_kept_recordings_hold_the_whole_script(path):
    release = broker_release(path.name[: -len('.json.gz')])
    recorded = {name.split('/')[0] for name in recordings.read(path)}
    labels = {case.label for case in cases(recordings.ALL, release)}
    assert recorded == labels, 'record it again'
