"""Lint of the language of docstrings, comments, messages and documents.

    python -m test.language [PATHS]    file:line, the words found, and the better wording

Reads docstrings, comments, string literals that are messages (several words, not data), and
``.rst`` files. ``PATTERNS`` has the words, each with an example that it finds and one that it does
not. Called by test_language.py, which allows no finding.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import tokenize
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PATHS = ('kafka', 'docs', 'README.rst', 'CONTRIBUTING.rst')
#: Written by a program from other texts, or quotations of other programs.
GENERATED = ('docs/spark_differential.rst', 'docs/differential.rst', 'docs/foreign_clients.rst')


class Pattern(NamedTuple):
    """Words to avoid: a regular expression, why, and what to write instead.

    ``unless``: found near the words, it makes them fine. ``comments``: for comments alone.
    """

    words: str
    why: str
    better: str
    found: str
    fine: str
    unless: str = ''
    comments: bool = False


PATTERNS = (
    Pattern(
        r'\bwho(?:ever|soever)\b',
        'a free relative clause hides the actor',
        'name the actor: "the thread that", "the caller", "a client that"',
        'Whoever waits sends the batch.',
        'The thread that waits sends the batch.',
    ),
    Pattern(
        r'(?:^|[.:;] )(?-i:Who) (?![^.?!]*\?)'
        r'|\b(?:by|for|from|than|to|with|when|if|while|once|because|before|after|until|unless)'
        r' who ',
        'a free relative clause hides the actor',
        'name the actor: "the thread that", "the caller", "a client that"',
        'Sent by who waits for it.',
        'Who sends it? The thread that waits for it. A reader who starts here has to know.',
    ),
    Pattern(
        r'\bwhom\b',
        'stilted',
        'name the actor',
        'As whom a member commits.',
        'The member id that a commit carries.',
    ),
    Pattern(
        r'\banew\b', 'archaic', '"again"', 'The loop connects anew.', 'The loop connects again.'
    ),
    Pattern(
        r'\b(?:that|which|what|it|this) (?:is|was|are|were|be) none\b|\bfor (?-i:none)\b',
        'unclear what is absent',
        '"absent", "not a <thing>", "no <thing> exists"',
        'Raises ValueError for what is none.',
        'Raises ValueError if the argument is not a partition; 0 for none.',
        unless=r'\d for none',
    ),
    Pattern(
        r'(?<!there )(?<!There )\b(?:is|are|was|were) no'
        r' (?!longer\b|more\b|less\b|such\b|need\b|\w+er\b)',
        'German negation',
        '"is not a"',
        'What answers is no SOCKS5 proxy.',
        'There is no proxy, and the peer is not a SOCKS5 proxy. It is no longer used.',
    ),
    Pattern(
        r'\bbehind\b',
        'a place used for a time or an order',
        '"after"; "behind" is for proxies, TLS and lag',
        'Bytes that come behind the last member.',
        'Bytes after the last member. A broker behind TLS, a consumer that falls behind.',
        unless=r'behind: |behind (?:TLS|NAT'
        r'|an? (?:\w+ )?(?:proxy|proxies|firewall|load)|the proxy|proxies'
        r'|the (?:end|log|leader|high))|(?:fall|falls|fell|fallen|falling|lags?|far) behind',
    ),
    Pattern(
        r'\btells? (?:whether|if)\b',
        'not what a function does',
        '"Return True if"; "says whether"',
        'Tell whether gzip can be used.',
        'Return True if gzip can be used.',
    ),
    Pattern(
        r'\bhand(?:s|ed|ing)? (?:\w+ )?(?:out|back|over)\b',
        'a metaphor for three different calls',
        '"return", "pass", "yield"',
        'Hands out the next record.',
        'Returns the next record.',
    ),
    Pattern(
        r'\bow(?:e|es|ed|ing)\b',
        'a metaphor',
        '"pending", "outstanding"',
        'The callbacks that are owed.',
        'The pending callbacks of the owner.',
    ),
    Pattern(
        r'\b(?:a|one|another|each|next|every|last) look\b'
        r'|\blook(?:s|ed|ing)? (?:at|whether|again|if|after)\b',
        'vague',
        '"check", "read", "examine"; "ignored" for "not looked at"',
        'A look at the clock each second.',
        'Checks the clock each second; looks up the name.',
    ),
    Pattern(
        r"\b(?:nobody|somebody|anybody|everybody|someone|anyone|everyone)(?:'s)?\b",
        'threads, clients and brokers are not persons',
        'name it: "no thread", "another client", "the caller"',
        'Nobody waits for the answer.',
        'No thread waits for the response.',
    ),
    Pattern(
        r'\bthere (?:is|are|was|were) (?:not\b(?! (?:a|an|any|enough|yet|only|more)\b)|none\b)',
        'a sentence without its noun',
        '"does not exist", "unknown"',
        'An option that there is not.',
        'An unknown option. There is not enough memory. None if there is none.',
        unless=r'(?:if|when|where|while|unless) there (?:is|are|was|were) none',
    ),
    Pattern(
        r'\bin vain\b',
        'archaic',
        '"without success", "fails"',
        'It asks in vain.',
        'The request fails.',
    ),
    Pattern(
        r'\bat hand\b',
        'vague',
        '"available", "buffered", "already received"',
        'Records that are at hand.',
        'Records that are buffered.',
    ),
    Pattern(
        r'\bput(?:s|ting)? up\b',
        'not what a request does',
        '"request", "set", "raise" (a flag)',
        'It puts up a wake-up.',
        'It requests a wake-up, puts it in a queue.',
    ),
    Pattern(
        r'\bso (?:many|few)\b(?![^.;:]*\b(?:that|as)\b)',
        'a number without a name',
        '"this number of", "at most", the name of the argument',
        'Wait for so many milliseconds.',
        'There are so many topics that the request is split.',
    ),
    Pattern(
        r'\bfor good\b',
        'idiom',
        '"permanently", "finally"',
        'The broker is gone for good.',
        'The broker is gone permanently, for a good reason.',
    ),
    Pattern(
        r'\bbeside\b',
        'used for "besides", "with" and "next to"',
        '"besides", "in addition to", "next to", "together with"',
        'Beside the codec, the level.',
        'Besides the codec, the level.',
    ),
    Pattern(
        r'\b(?:is|are|was|were|be|been) told\b|\btold (?:otherwise|so|of|from|by|apart|to)\b',
        'code has no one to tell',
        '"is notified", "reported", "recognised by", "configured"',
        'The era is told from the call.',
        'The era is recognised by the call.',
    ),
    Pattern(
        r'\bhear(?:s|d|ing)?\b(?! ?(?:beat))',
        'code has no ears',
        '"receives", "is notified of"',
        'Until a broker is heard of.',
        'Until a broker sends a heartbeat response.',
    ),
    Pattern(
        r'\bagain and again\b',
        'vague',
        '"repeatedly", "in a loop"',
        'Asks again and again.',
        'Polls repeatedly.',
    ),
    Pattern(
        r'\b(?:its|their|the) like\b(?! (?:a|the)\b)',
        'vague',
        '"similar", the list itself',
        'snappy_encode and its like.',
        'snappy_encode and similar functions; this is like that.',
    ),
    Pattern(
        r'\bgo(?:es)? by (?!the name)',
        'idiom',
        '"uses", "follows", "depends on"',
        'It goes by a hash of the key.',
        'It uses a hash of the key.',
    ),
    Pattern(
        r'\bst(?:ands?|ood|anding)\b(?! ?-)',
        'a place that is no place',
        '"is", "is in", "comes first"',
        'The key stands before the value.',
        'The key comes before the value; W stands for a writer. Stand-alone.',
        unless=r'stands? (?:for|by)\b|long.standing',
    ),
    Pattern(
        r'\b(?:he|him|his|himself)\b',
        'threads, clients and programs are not persons',
        '"it", "the caller", "the user"',
        'The caller reads it himself.',
        'The caller reads it itself.',
    ),
    Pattern(
        r'\b(?:thereof|therein|thereupon|wherein|whereupon|hitherto|henceforth|hence|thus far)\b',
        'archaic',
        'a plain sentence',
        'The size thereof.',
        'Its size.',
    ),
    Pattern(
        r'(?:^|[.] )(?-i:Owns)\b',
        'a module docstring says what the module is, not what it owns',
        'a noun phrase, then who calls it, threads and locks, the KIP',
        'Owns telling them apart.',
        'The thread that owns the lock.',
    ),
    Pattern(
        r'\bbut for\b',
        'archaic',
        '"except"',
        'As lz4_decode but for the checksum.',
        'As lz4_decode except for the checksum.',
    ),
    Pattern(
        r'\b(?:has|have|had) it\b(?! (?:been|in|on|as|at|to|from|with|open|all)\b)',
        'idiom',
        '"as in the Java client", "defines"',
        'A hash, as the Java client has it.',
        'A hash, as in the Java client.',
    ),
    Pattern(
        r'\b(?:what|all|than) there (?:is|are|was|were)\b'
        r'|\bthat there (?:is|are|was|were)\b(?! (?:a|an|no|nothing|enough|only|one)\b)',
        'a sentence without its noun',
        'name it: "the only one", "the available ones"',
        'The batch that is all there is.',
        'The only batch.',
    ),
    Pattern(
        r'\bof no (?:use|avail)\b',
        'idiom',
        '"not used", "has no effect"',
        'A base of no use alone.',
        'A base that is not used alone.',
    ),
    Pattern(
        r'^(?-i:Says|Knows|Keeps|Holds|Takes|Makes|Lets|Gives|Goes|Does|Wakes|Waits|Asks|Tells|Sends'
        r'|Reads|Stands|Comes|Gets|Needs|Wants|Costs|Owns)\b',
        'a sentence without its subject',
        'say which thing does it',
        '# Keeps the last offset.',
        '# The buffer keeps the last offset.',
        comments=True,
    ),
)


#: What any pattern finds: most texts have nothing of it.
ANY = re.compile(
    '|'.join('(?:%s)' % pattern.words for pattern in PATTERNS), re.IGNORECASE | re.MULTILINE
)


class Finding(NamedTuple):
    """Words at a place."""

    path: str
    line: int
    words: str
    pattern: Pattern

    def __str__(self):
        return '%s:%d: "%s": %s' % (self.path, self.line, self.words, self.pattern.better)


class Text(NamedTuple):
    """A piece of prose: its first line, its text, and whether it is a comment."""

    line: int
    text: str
    comment: bool = False


def _blank(match):
    return re.sub(r'[^\n]', '`', match.group())


def _plain(text):
    """Replace what is code inside of prose, of equal length: literals, roles, URLs, examples."""
    text = re.sub(r'``[^`]+``|:\w+:`[^`]+`|https?://\S+', _blank, text)
    return re.sub(r'(?m)^\s*(?:>>>|\.\.\.) .*$', _blank, text)


def _comments(source):
    """Yield blocks of comments: lines that follow each other are one text."""
    line, lines = 0, []
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    for token in tokens:
        if token.type == tokenize.COMMENT:
            if lines and token.start[0] != line + len(lines):
                yield Text(line, '\n'.join(lines), True)
                lines = []
            if not lines:
                line = token.start[0]
            lines.append(token.string.lstrip('#:! '))
    if lines:
        yield Text(line, '\n'.join(lines), True)


def _is_message(value):
    """Return True if a string literal is for people: three words of letters or more."""
    return len(re.findall(r'(?:^|\s)[A-Za-z][a-z]*(?=[\s.,:;)]|$)', value)) >= 3


def texts_of_python(source):
    """Yield the comments, docstrings and messages of a Python file."""
    yield from _comments(source)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if _is_message(node.value):
                yield Text(node.lineno, node.value)


def texts_of_rst(source):
    """Yield the prose of a document, without its literal blocks."""
    kept = []
    indent = None
    for line in source.split('\n'):
        depth = len(line) - len(line.lstrip())
        if indent is not None and line.strip() and depth <= indent:
            indent = None
        kept.append('' if indent is not None else line)
        if indent is None and re.search(r'::\s*$|^\s*\.\. code', line):
            indent = depth
    yield Text(1, '\n'.join(kept))


def _joined(text):
    """Return a text with one line per paragraph, and the line number of each character."""
    words, lines = [], []
    for number, row in enumerate(text.split('\n')):
        kept = ' '.join(row.split())
        if not kept and words and words[-1] != '\n':
            kept = '\n'
        elif kept and words and words[-1] != '\n':
            kept = ' ' + kept
        words.extend(kept)
        lines.extend([number] * len(kept))
    return ''.join(words), lines


def findings_in(text, path=''):
    """Yield the findings in one text."""
    plain = _plain(text.text)
    if not ANY.search(' '.join(plain.split())):
        return
    plain, lines = _joined(plain)
    for pattern in PATTERNS:
        if pattern.comments and not text.comment:
            continue
        for match in re.finditer(pattern.words, plain, re.IGNORECASE | re.MULTILINE):
            near = plain[max(0, match.start() - 20) : match.end() + 30]
            if pattern.unless and re.search(pattern.unless, near):
                continue
            words = match.group().strip('.:; \n')
            start = match.start() + match.group().index(words)
            yield Finding(path, text.line + lines[start], words, pattern)


def findings(path):
    """Return the findings of a file."""
    source = path.read_text(encoding='utf-8')
    name = path.relative_to(ROOT).as_posix() if ROOT in path.parents else str(path)
    texts = texts_of_python(source) if path.suffix == '.py' else texts_of_rst(source)
    found = [one for text in texts for one in findings_in(text, name)]
    return sorted(found, key=lambda one: one.line)


def files(paths):
    """Return the files below paths that hold prose."""
    found = []
    for path in (ROOT / path for path in paths):
        if path.is_dir():
            found += [one for one in path.rglob('*') if one.suffix in ('.py', '.rst')]
        else:
            found.append(path)
    return sorted(
        one for one in found if not any(one.as_posix().endswith(name) for name in GENERATED)
    )


def main(arguments=None):
    """Print what was found; return the number of findings."""
    parser = argparse.ArgumentParser(prog='python -m test.language', description=__doc__)
    parser.add_argument('paths', nargs='*', default=PATHS)
    found = [
        str(one) for path in files(parser.parse_args(arguments).paths) for one in findings(path)
    ]
    sys.stdout.write(''.join('%s\n' % one for one in found))
    return len(found)


if __name__ == '__main__':
    sys.exit(1 if main() else 0)
