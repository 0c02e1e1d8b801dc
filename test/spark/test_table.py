"""The page of comparisons has the cases of today, with the explanations of today."""

from __future__ import annotations

from test.spark import cases, table


def test_the_page_says_what_was_noted_of_the_cases_of_today():
    """Written by ``python -m test.spark.table``."""
    text = table.PAGE.read_text()
    assert text == table.page(text, table.noted())


def test_each_case_was_run_on_each_release_that_can_have_it():
    for release, of in table.noted().items():
        names = {str(each) for each in cases.ALL if each.group != 'formats' or release == '2.8.2'}
        assert set(of) == names, release
    assert set(table.noted()) == set(table.RELEASES)


def test_no_difference_is_without_explanation():
    for release, of in table.noted().items():
        assert not [name for name, told in of.items() if told['word'] == 'different'], release


def test_names_of_cases_are_unique_and_their_groups_are_on_the_page():
    names = [str(each) for each in cases.ALL]
    assert len(names) == len(set(names)) >= 40
    assert {each.group for each in cases.ALL} == set(table.GROUPS)


def test_what_differs_on_purpose_has_a_reason():
    assert all(each.reason for each in cases.ALL if each.group == 'stricter')
