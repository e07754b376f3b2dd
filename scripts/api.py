#!/usr/bin/env python3
"""api.py: the reference of the public headers as Markdown, one page a section: docs/api/*.md.

    scripts/api.py             writes docs/api
    scripts/api.py --check     exit 1, and a diff, where docs/api is not what would be written

What a header says is in its form:

    /* ------ arrays ---- */       a section, one page
    /* ---- views ---- */          a group of it
    a comment and an empty line    a paragraph of the page
    a comment, a declaration       says what is declared; so does a comment behind it

A function without such words is an error, and so is a form that is not known.  The pages ops-*.md come from the table
of ops (`monochord docs`); here they are only listed.
"""
import difflib
import os
import re
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir)
OUT = os.path.join(ROOT, 'docs', 'api')
HEADERS = [('monochord.h', ''), ('monochord_nn.h', 'nn-')]
SECTION = re.compile(r'/\* -{5,} (.+?) -{4} \*/$')
GROUP = re.compile(r'/\* -{4} (.+?) -{4} \*/$')
FUNCTION = re.compile(r'^MC_API [^;]*?\b(\w+)\(')


class Entry:
    """A declaration: its names, its text in C, what is said of it."""

    def __init__(self, names, code, says, function):
        self.names, self.code, self.says, self.function = names, code, says, function


class Page:
    def __init__(self, header, title, slug):
        self.header, self.title, self.slug = header, title, slug
        self.parts = []  # ('group', text), ('text', comment) or ('entry', Entry)


def slug_of(title):
    return re.sub(r'[^a-z0-9]+', '-', title.lower()).strip('-')


def comment_text(lines):
    """The lines of a comment without its signs."""
    text = '\n'.join(lines)
    text = re.sub(r'^\s*/\* ?', '', text)
    text = re.sub(r'\s*\*/\s*$', '', text)
    return '\n'.join(re.sub(r'^ \* ?', '', line) for line in text.split('\n'))


CODE = re.compile(r"""
    `[^`]*` | "[^"\n]*"                        # as it stands
  | docs/[\w-]+\.md                            # a page of the manual
  | (?:const[ ])?(?:char|void|mc_\w+)[ ]\*     # a pointer
  | (?<![\w.])(?:mc_|MC_)\w+\b                   # a name, with the arguments behind it
  | (?<![\w.])[.]?\w+_\w+(?:[.]h)? | \bNULL\b | \bNaN\b
""", re.X)


def arguments(text, at):
    """The end of the brackets that open at `at`; `at` where they do not close soon."""
    depth = 0
    for i in range(at, min(len(text), at + 90)):
        depth += {'(': 1, ')': -1}.get(text[i], 0)
        if depth == 0:
            return i + 1 if i > at else at
    return at


def escaped(text):
    return re.sub(r'([*<_])', r'\\\1', text)


def inline(text):
    """A line of prose: names become code, signs of Markdown do not count."""
    out, at = [], 0
    text = text.replace('.  ', '. ')
    lead = re.match(r'[A-Z]\w+\. ', text)
    if lead and ' ' not in lead.group(0)[:-1]:
        out.append('**%s** ' % lead.group(0).strip())
        at = lead.end()
    for m in iter(lambda: CODE.search(text, at), None):
        out.append(escaped(text[at:m.start()]))
        at, part = m.end(), m.group(0)
        if part.startswith('docs/'):
            out.append('[%s](../%s)' % (part, part[5:]))
            continue
        if re.match(r'mc_|MC_', part) and text[at:at + 1] == '(':
            at = arguments(text, at)
            part = text[m.start():at]
        out.append(part if part[0] == '`' else '`%s`' % part)
    out.append(escaped(text[at:]))
    return ''.join(out)


def prose(text):
    """A comment as Markdown: paragraphs; what is indented is code."""
    out, para, code = [], [], []

    def flush():
        if para:
            out.append(inline(' '.join(para)))
        if code:
            out.append('```c\n%s\n```' % '\n'.join(code))
        del para[:], code[:]

    for line in text.split('\n'):
        if line.startswith('    '):
            if para:
                flush()
            code.append(line[4:])
        elif not line.strip():
            flush()
        else:
            if code:
                flush()
            para.append(line.strip())
    flush()
    return '\n\n'.join(out)


def sentence(text):
    """What stands behind a declaration, as a sentence."""
    text = text.strip()
    if re.match(r'[a-z]+[ ,:;]|[a-z]+$', text) and not re.match(r'[b-z][ ,]|a as', text):
        text = text[0].upper() + text[1:]
    return text if text[-1:] in '.:;?!' else text + '.'


def fail(header, number, what):
    sys.exit('api.py: include/%s:%d: %s' % (header, number, what))


def without_comments(text):
    return re.sub(r'/\*.*?\*/', '', text, flags=re.S)


def read(header, prefix):
    """The file's own comment, and its pages."""
    lines = open(os.path.join(ROOT, 'include', header), encoding='utf-8').read().split('\n')
    head, pages, page = None, [], Page(header, '', '')
    pending = None  # a comment that waits for what follows it
    i = 0
    while i < len(lines):
        line = lines[i]
        start = i
        if SECTION.match(line) or GROUP.match(line):
            if pending:
                fail(header, i + 1, 'a comment in front of a heading')
            m = SECTION.match(line)
            if m:
                page = Page(header, m.group(1), prefix + slug_of(m.group(1)))
                pages.append(page)
            else:
                page.parts.append(('group', GROUP.match(line).group(1)))
            i += 1
        elif line.startswith('/*'):
            while '*/' not in lines[i]:
                i += 1
            i += 1
            text = comment_text(lines[start:i])
            if head is None:
                head = text
            elif i < len(lines) and not lines[i].strip():
                page.parts.append(('text', text))
            elif pending:
                fail(header, start + 1, 'two comments in front of one declaration')
            else:
                pending = text
        elif line.startswith('#'):
            while lines[i].endswith('\\'):
                i += 1
            i += 1
            text = '\n'.join(lines[start:i])
            if text == '#if defined(__cplusplus)':  # what C++ has in place of the same for C
                while not lines[i].startswith(('#else', '#endif')):
                    i += 1
            m = re.match(r'#define (\w+)', text)
            said = re.search(r'\s*/\* (.*?) \*/$', text)
            last = page.parts[-1] if page.parts else None
            if m and (pending or said):
                says = [prose(pending)] if pending else []
                says += [prose(sentence(said.group(1)))] if said else []
                page.parts.append(('entry', Entry([m.group(1)], text[:said.start()] if said else text, '\n\n'.join(says), False)))
                pending = None
            elif m and last and last[0] == 'entry' and lines[start - 1].endswith(';'):
                last[1].code += '\n' + text
                last[1].names.append(m.group(1))
        elif line.startswith(('MC_API', 'typedef', 'enum', 'struct')):
            depth = 0
            while True:
                bare = without_comments(lines[i])
                depth += bare.count('{') - bare.count('}')
                i += 1
                if depth == 0 and ';' in bare:
                    break
            text = '\n'.join(lines[start:i])
            function = FUNCTION.match(text)
            said = re.search(r'\s*/\*((?:[^*]|\*(?!/))*)\*/$', text)
            first = re.match(r'(?:typedef )?(?:struct|enum) \w+ \{(\s*/\* (.*?) \*/)', text)
            if first:
                said_text, text = first.group(2), text.replace(first.group(1), '', 1)
            elif said:
                said_text, text = said.group(1), text[:said.start()]
            else:
                said_text = ''
            if function:
                names = [function.group(1)]
            elif text.startswith('typedef'):
                names = [re.search(r'(\w+)(?:\([^()]*\))?;$', text).group(1)]
            elif text.startswith('enum {'):         # numbers of the macros' own
                continue
            else:
                names = [re.match(r'(?:struct|enum) (\w+)', text).group(1)]
            says = [prose(pending)] if pending else []
            says += [prose(sentence(said_text))] if said_text else []
            if not says and not re.match(r'struct \w+;', text):
                fail(header, start + 1, 'nothing says what %s is' % names[0])
            if function:
                text = re.sub(r' MC_FORMAT\(.*\)(?=;)', '', text).replace('\n       ', '\n')[len('MC_API '):]
            page.parts.append(('entry', Entry(names, text, '\n\n'.join(says), bool(function))))
            pending = None
        else:
            pending = None if not line.startswith(' ') else pending
            i += 1
    return head, pages


def heading(kind, part):
    return ', '.join(part.names) if kind == 'entry' else part[0].upper() + part[1:]


def anchors(page):
    """The name that Markdown gives to each heading of a page; a second of one name gets a number."""
    seen, out = {slug_of(page.title): 1}, []
    for kind, part in page.parts:
        name = '' if kind == 'text' else re.sub(r'[^\w -]', '', heading(kind, part).lower()).replace(' ', '-')
        out.append(name + ('-%d' % seen[name] if name in seen else ''))
        seen[name] = seen.get(name, 0) + 1
    return out


def render(page):
    out = ['# %s' % (page.title[0].upper() + page.title[1:]),
           'Written by `make docs` from `include/%s`; rules for all functions: [the reference](index.md).' % page.header]
    level = '##'
    for kind, part in page.parts:
        if kind == 'text':
            out.append(prose(part))
        elif kind == 'group':
            out.append('## ' + heading(kind, part))
            level = '###'
        else:
            out += ['%s %s' % (level, heading(kind, part)), '```c\n%s\n```' % part.code]
            out += [part.says] if part.says else []
    return '\n\n'.join(out) + '\n'


def families():
    """Titles of the manual of ops, in its order, with what is the name of their page."""
    text = open(os.path.join(ROOT, 'docs', 'ops.md'), encoding='utf-8').read()
    for title in re.findall(r'^## (.+)$', text, re.M):
        yield title, 'ops-' + re.sub(r'[^a-z0-9-]', '', title.lower().replace(' ', '-'))


OPS = '''Each page has a family of ops. An entry shows the call as it is written in a formula, the prototype of the C function,
what the op does, an example with its result, and a table:

| row | what it says |
| --- | --- |
| dtypes | the dtype of the result for each dtype of the inputs; "the same": that of the inputs; "refused": an error |
| sizes | the sizes of the results in the example's form; `size(x, axis=0)` is a size of an input; `?` depends on data, or is a longer formula |
| gradient | the inputs that the result has a gradient by; "zero": it is zero everywhere; "none": asking for it is an error, `MC_EGRAD` |

Attributes go to the C functions as text, printf-like, last: `mc_sum(x, "axis=%d, keepdims=True", 1)`; NULL leaves all
at their defaults. A tensor with the default None may be NULL. An op with several results gives a tuple:
`mc_item(t, 0)`. Examples are evaluated by the library when the page is written.'''


def index(heads, pages):
    out = ['# API reference', 'Written by `make docs` from `include/monochord.h`, `include/monochord_nn.h` and the table of ops.',
           '## monochord.h', prose(heads[0])]
    for header, _ in HEADERS:
        if header != HEADERS[0][0]:
            out += ['## ' + header, prose(heads[1])]
        rows = ['| page | what is declared |', '| --- | --- |']
        for page in pages:
            if page.header == header:
                names = ['[`%s`](%s.md#%s)' % (e.names[-1], page.slug, at)
                         for (kind, e), at in zip(page.parts, anchors(page)) if kind == 'entry']
                rows.append('| [%s](%s.md) | %s |' % (page.title, page.slug, ', '.join(names)))
        out.append('\n'.join(rows))
    out += ['## Ops', OPS, '\n'.join('- [%s](%s.md)' % f for f in families())]
    return '\n\n'.join(out) + '\n'


def main():
    heads, pages = [], []
    for header, prefix in HEADERS:
        head, more = read(header, prefix)
        heads.append(head)
        pages += more
    files = {page.slug + '.md': render(page) for page in pages}
    files['index.md'] = index(heads, pages)
    have = {f for f in os.listdir(OUT) if not f.startswith('ops-')} if os.path.isdir(OUT) else set()
    if sys.argv[1:] == ['--check']:
        stale = have ^ set(files)
        for name in sorted(stale):
            print('docs/api/%s %s' % (name, 'is of no section' if name in have else 'is missing'))
        for name in sorted(have & set(files)):
            text = open(os.path.join(OUT, name), encoding='utf-8').read()
            diff = list(difflib.unified_diff(text.split('\n'), files[name].split('\n'), 'docs/api/' + name, 'the headers', lineterm=''))
            stale |= {name} if diff else set()
            print('\n'.join(diff[:20]), end='\n' if diff else '')
        sys.exit('docs/api is older than the headers: make docs' if stale else 0)
    if sys.argv[1:]:
        sys.exit(__doc__)
    os.makedirs(OUT, exist_ok=True)
    for name in have - set(files):
        os.remove(os.path.join(OUT, name))
    for name, text in files.items():
        with open(os.path.join(OUT, name), 'w', encoding='utf-8') as f:
            f.write(text)
    print('wrote docs/api/*.md: %d pages, %d functions' %
          (len(files), sum(kind == 'entry' and e.function for page in pages for kind, e in page.parts)))


main()
