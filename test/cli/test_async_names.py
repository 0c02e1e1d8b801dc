"""kafka.cli.async_names: `async` and `await` as names and as keywords, told from their places."""

from __future__ import annotations

import ast
import collections
import glob
import importlib.util
import io
import keyword
import os
import random
import sys
import tokenize
import traceback
import warnings

import pytest

from kafka.cli import async_names

# Each source is written with other words first, which today's Python reads: ASYN_ and AWAI_ stand
# for the names, async and await for the keywords.
NAMES = [
    'f(ASYN_=True)',
    'f(1, ASYN_ = True, AWAI_=False)',
    'f(**{"async": True}, ASYN_=1)',
    'dict(ASYN_=1, AWAI_=2)',
    'x.ASYN_',
    'x.ASYN_.AWAI_ = x.y',
    'x.ASYN_(1)',
    'del x.ASYN_, ASYN_',
    'ASYN_ = 1',
    'ASYN_: int = 1',
    'ASYN_ += AWAI_ - ASYN_',
    'ASYN_, AWAI_ = AWAI_, ASYN_',
    'print(ASYN_)',
    'ASYN_(1)',
    'AWAI_(1)',
    'AWAI_[1]',
    'AWAI_ (1) + AWAI_ [1]',
    'ASYN_',
    'AWAI_',
    'def f(ASYN_=False, *AWAI_): return ASYN_',
    'def f(*, ASYN_, **AWAI_): pass',
    'def ASYN_(): pass',
    'def AWAI_(self): return self.AWAI_()',
    'class ASYN_: pass',
    'class C(ASYN_, AWAI_): ASYN_ = 1',
    '@ASYN_\ndef f(): pass',
    '@x.ASYN_(ASYN_=1)\nclass C: pass',
    'import ASYN_',
    'import ASYN_.AWAI_ as ASYN_, x',
    'from x import ASYN_',
    'from x import (ASYN_ as AWAI_,\n    y)',
    'from ASYN_ import x',
    'from x.ASYN_.y import x as ASYN_',
    'from . import ASYN_',
    'lambda ASYN_: ASYN_',
    'lambda ASYN_=AWAI_: (AWAI_)',
    '[ASYN_ for ASYN_ in x]',
    '[ASYN_ for x in ASYN_ if ASYN_]',
    '{ASYN_: AWAI_ for ASYN_, AWAI_ in x}',
    '(AWAI_ for AWAI_ in AWAI_)',
    '[not ASYN_ for x in y]',
    '[x.ASYN_ for x in y]',
    '[-ASYN_ for x in y]',
    'for ASYN_ in AWAI_: pass',
    'with ASYN_ as AWAI_: pass',
    'try: pass\nexcept ASYN_ as AWAI_: pass',
    'def f():\n    global ASYN_, x\n    def g():\n        nonlocal AWAI_\n    AWAI_ = 1',
    'if ASYN_ and AWAI_ or not ASYN_: x = AWAI_ if AWAI_ else ASYN_',
    'AWAI_ is None, AWAI_ in x, AWAI_ not in x, AWAI_ == 1',
    'while AWAI_: assert ASYN_, AWAI_',
    'return_ = ASYN_; yield_ = AWAI_',
    'def f():\n    yield ASYN_\n    return AWAI_',
    'x[ASYN_:AWAI_]',
    'x = ASYN_ \\\n    + 1',
    'f(ASYN_\n  =\n  True)',
    'f(ASYN_=  # async=\n  True)',
    'x = """async\nawait""", "async", ASYN_',
    'é = "é", ASYN_, "é"; ASYN_',
    '"""async def"""\nASYN_ = 1',
    'if 1:\n\tASYN_ = 1\n\tif 2:\n\t\tx = AWAI_(2)\n',
    'print(f"{ASYN_} async {x:>{AWAI_}}")',
    'print(f"{x.ASYN_!r} {f(ASYN_=1)}")',
    'x = f"""\n{ASYN_}\n  {AWAI_}"""',
    'x = rf"\\d{ASYN_}", Rf"{ASYN_}", f\'{ASYN_}\'',
    'f"{ASYN_=}"',
    'async def f():\n    ASYN_ = 1\n    await x\n    x.ASYN_(AWAI_=1)',
    'async def f():\n    return await (x), await [x], await x.y(ASYN_=1), await "s", await {}',
    'async def f(x=AWAI_(1)): await (1)',
    'async def f():\n    def g():\n        return AWAI_(1)\n    return await (1)',
    'def f():\n    async def g():\n        await (1)\n    AWAI_(1)',
    'async def f(): await (1)\nAWAI_(1)',
    'async def f(x: Dict[int, {1: 2}] = {1: 2}) -> {1: 2}:\n    await (1)\nAWAI_(1)',
    'def f(): AWAI_(1)\nasync def g():\n    await (1)',
    'async def f():\n    async with x as ASYN_, y: pass\n    async for ASYN_ in x: pass',
    'async def f():\n    return [x async for x in y], {await x async for x in ASYN_}',
    'async def f():\n    return [x async for x in y async for z in x if await z]',
    'async def f():\n    return (1 async for x in y), (f() async for x in y)',
    'class C:\n    async def ASYN_(self): await self.ASYN_\n    def AWAI_(self): self.AWAI_(1)',
    'async def f():\n    if x:\n        await (1)\n    else:\n        await [1]\nAWAI_[1]',
    '@x\nasync def f():\n    f"{await x}"',
    'async def f():\n    f"{[x async for x in y]} {await x}"',
    'async def f():\n    f"{await (x)} {await  [x]} {x.ASYN_} {ASYN_(1)}"',
    'f"{AWAI_(1)} {AWAI_ (1)} {AWAI_ if AWAI_ in x else AWAI_ is ASYN_} await x async await"',
]
if sys.version_info >= (3, 10):
    NAMES += [
        'match ASYN_:\n    case C(ASYN_=AWAI_): pass\n    case {1: x, **ASYN_}: pass',
        'match AWAI_:\n    case [x, *ASYN_]: pass\n    case x.ASYN_: pass',
    ]
if sys.version_info >= (3, 12):
    NAMES += [
        'type ASYN_ = int',
        'def f[ASYN_](x: ASYN_) -> ASYN_: pass',
        'f"{x["async"]} {ASYN_(f"{AWAI_}async")}async"',
    ]


def renamed(source):
    return source.replace('ASYN_', 'async').replace('AWAI_', 'await')


def dump(tree):
    return ast.dump(tree, include_attributes=True)


@pytest.mark.parametrize('source', NAMES)
def test_the_tree_is_that_of_other_names_with_the_same_positions(source):
    expected = dump(ast.parse(source)).replace('ASYN_', 'async').replace('AWAI_', 'await')
    assert dump(async_names.parse(renamed(source), 'x.py')) == expected


@pytest.mark.parametrize('source', NAMES)
def test_the_compiler_takes_the_tree(source):
    compile(async_names.parse(renamed(source), 'x.py'), 'x.py', 'exec', dont_inherit=True)


def run(source):
    names = {}
    exec(compile(async_names.parse(source, 'x.py'), 'x.py', 'exec'), names)
    return names


def test_the_name_is_the_true_one_to_whoever_is_called():
    names = run(
        'def f(**options): return options\n'
        'class C: async = 3\n'
        'def g(async=1): return async\n'
        'found = f(async=True, await=2), C.async, g(async=5), f"{g(async=6)}"\n'
    )
    assert names['found'] == ({'async': True, 'await': 2}, 3, 5, '6')
    assert getattr(names['C'], 'async') == 3
    assert names['g'](**{'async': 7}) == 7


def test_text_in_strings_and_names_that_contain_the_words_stay():
    names = run('async_ = "async await"; xasync = async_; async = f"async {async_} await"')
    assert names['async_'] == names['xasync'] == 'async await'
    assert names['async'] == 'async async await await'


def test_text_that_looks_like_a_placeholder_stays():
    """Placeholders are names that the source does not have, even where it has the usual ones."""
    names = run('qaaaa = qaaab = "qaaaa"; async = f"qaaac{qaaaa}", "qaa" "ad"')
    assert names['async'] == ('qaaacqaaaa', 'qaaad')


@pytest.mark.parametrize(
    'source, row, text',
    [
        ('async = 1\nx = = 2\n', 2, 'x = = 2'),
        ('f(async=1)\nf(async 1)\n', 2, 'f(async 1)'),
        ('f(async=1)\nprint "x"\n', 2, 'print "x"'),
        ('if 1:\nasync = 1\n', 2, 'async = 1'),
        ('async = "x\n', 1, 'async = "x'),
        ('async = 1\n  x = 1\n', 2, '  x = 1'),
    ],
)
def test_other_errors_show_the_file_as_it_is(source, row, text):
    with pytest.raises(SyntaxError) as caught:
        async_names.parse(source, 'x.py')
    assert (caught.value.filename, caught.value.lineno) == ('x.py', row)
    shown = ''.join(traceback.format_exception_only(SyntaxError, caught.value))
    assert text.strip() in shown or sys.version_info < (3, 10)
    assert 'qaa' not in shown


@pytest.mark.parametrize('source', ['async = (1', 'x = """async', 'async = 1\n\\', 'async = 08'])
def test_what_cannot_be_read_in_tokens_is_a_syntax_error_too(source):
    with pytest.raises(SyntaxError) as caught:
        async_names.parse(source, 'x.py')
    assert caught.value.filename == 'x.py'


# --- the standard library as a thousand examples ------------------------------------------------


SIZE = 15000  # bytes of the largest; they would take long and say no more


def library(seed, count):
    """Yield the path, text and tree of files of the standard library that compile."""
    paths = sorted(glob.glob(os.path.join(os.path.dirname(os.__file__), '**', '*.py')))
    paths += sorted(glob.glob(os.path.join(os.path.dirname(os.__file__), '*.py')))
    random.Random(seed).shuffle(paths)
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        for path in paths:
            if count == 0 or 'site-packages' in path or os.path.getsize(path) > SIZE:
                continue
            try:
                with open(path, 'rb') as file:
                    text = importlib.util.decode_source(file.read())
                tree = ast.parse(text)
            except (SyntaxError, ValueError):
                continue
            count -= 1
            yield path, text, tree


def test_sources_that_have_only_the_keywords_keep_their_trees():
    """Coroutines as they are written today, asyncio first."""
    paths = glob.glob(os.path.join(os.path.dirname(os.__file__), 'asyncio', '*.py'))
    paths = [path for path in paths if os.path.getsize(path) < SIZE]
    assert len(paths) > 10
    for path in paths:
        with open(path, 'rb') as file:
            text = importlib.util.decode_source(file.read())
        if async_names.used_in(text):
            assert async_names.names(text) == [] or 'f"' in text or "f'" in text
            assert dump(async_names.parse(text, path)) == dump(ast.parse(text)), path


def with_another_name(text, name, word):
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    lines = list(io.StringIO(text))
    for token in reversed([t for t in tokens if t.type == tokenize.NAME and t.string == name]):
        row, column = token.start[0] - 1, token.start[1]
        lines[row] = lines[row][:column] + word + lines[row][column + len(name) :]
    return ''.join(lines)


def names_of(text, length):
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    found = collections.Counter(
        t.string for t in tokens if t.type == tokenize.NAME and len(t.string) == length
    )
    soft = getattr(keyword, 'softkwlist', [])
    return sorted(
        name
        for name in found
        if name.isascii() and not keyword.iskeyword(name) and name not in soft
    )


@pytest.mark.parametrize('seed', range(4))
def test_any_name_of_a_program_may_have_been_async_or_await(seed):
    """A source in which a name of five letters is exchanged for the word has the same tree."""
    tried = 0
    for path, text, tree in library(seed, 12):
        choices = names_of(text, 5)
        if 'async' in text or 'await' in text or len(choices) < 2:
            continue
        for word, name in zip(async_names.WORDS, random.Random(seed).sample(choices, 2)):
            changed = async_names.parse(with_another_name(text, name, word), path)
            async_names._rename(changed, {word: name})
            assert dump(changed) == dump(tree), (path, name, word)
            tried += 1
    assert tried > 5
