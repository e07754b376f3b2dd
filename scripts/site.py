#!/usr/bin/env python3
"""site.py: the documents as a site of static pages, without a network: build/site/index.html.

    scripts/site.py [FOLDER]

Pages are README.md, CONTRIBUTING.md, CHANGELOG.md, docs/*.md, docs/design/*.md and docs/api/*.md.  A link from one .md
file to another becomes a link between pages; a link to another file of the tree copies that file.  A link to a missing
file or heading is an error.  The Markdown that is read: headings, paragraphs, tables, fenced and indented
code, lists, quotations, links, images, code, emphasis, <code>.
"""
import html
import json
import os
import re
import shutil
import sys

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))

# The parts of the menu, and the documents of each in order; documents that are not named stand in the last part.
MENU = [
    ('Guide', ['README', 'docs/first-steps', 'docs/tutorial', 'docs/text-form', 'docs/from-numpy', 'docs/from-pytorch', 'docs/networks', 'docs/layers', 'docs/flags',
               'docs/gpu', 'docs/deploy', 'docs/export', 'docs/threads', 'docs/limits', 'docs/convolution', 'docs/pooling']),
    ('Reference', ['docs/api/index', 'docs/ops']),
    ('Internals', ['docs/map', 'docs/glossary', 'docs/design/kernels', 'docs/design/gpu', 'docs/design/convolution', 'docs/design/math', 'docs/math']),
    ('Contributing', ['CONTRIBUTING', 'CHANGELOG', 'docs/adding-an-op', 'docs/adding-a-rule', 'docs/adding-a-solver']),
]
LAST = 'Internals'

CSS = '''
:root { --ink: #1c1e21; --soft: #5b6470; --line: #dde1e6; --paper: #fff; --tint: #f5f6f8; --link: #0b5cad; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e6ea; --soft: #9aa3af; --line: #363b42; --paper: #17191c; --tint: #202327; --link: #7db7f2; }
  img { background: #fff; }
}
* { box-sizing: border-box; }
html { scroll-padding-top: 1rem; -webkit-text-size-adjust: 100%; }
body { margin: 0; color: var(--ink); background: var(--paper); font: 16px/1.6 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
a { color: var(--link); text-decoration: none; }
a:hover { text-decoration: underline; }
.frame { display: grid; grid-template-columns: 17rem minmax(0, 1fr); max-width: 82rem; margin: 0 auto; }
nav { border-right: 1px solid var(--line); padding: 1.2rem 1rem 2rem; font-size: .92rem; }
nav .stick { position: sticky; top: 1.2rem; max-height: calc(100vh - 2.4rem); overflow-y: auto; }
nav .name { font-weight: 700; font-size: 1.15rem; color: var(--ink); }
nav h2 { font-size: .75rem; letter-spacing: .06em; text-transform: uppercase; color: var(--soft); margin: 1.2rem 0 .3rem; border: 0; padding: 0; }
nav ul { list-style: none; margin: 0; padding: 0; }
nav li a { display: block; padding: .12rem .5rem; border-radius: 4px; color: var(--ink); overflow-wrap: anywhere; }
nav li li a { padding-left: 1.3rem; font-size: .88rem; }
nav li a.here { background: var(--tint); color: var(--link); font-weight: 600; }
nav summary { display: none; }
#ask { width: 100%; margin: .8rem 0 0; padding: .4rem .6rem; font: inherit; color: inherit; background: var(--tint); border: 1px solid var(--line); border-radius: 5px; }
#found { list-style: none; margin: .3rem 0 0; padding: 0; }
#found a { display: block; padding: .25rem .5rem; overflow-wrap: anywhere; }
#found small { display: block; color: var(--soft); }
#found a.on, #found a:hover { background: var(--tint); text-decoration: none; }
main { padding: 1.2rem 2.5rem 4rem; min-width: 0; }
main > * { max-width: 52rem; }
h1, h2, h3, h4 { line-height: 1.25; overflow-wrap: anywhere; }
h1 { font-size: 1.9rem; margin: .2rem 0 1rem; }
h2 { font-size: 1.35rem; margin: 2.2rem 0 .8rem; padding-top: .6rem; border-top: 1px solid var(--line); }
h3 { font-size: 1.08rem; margin: 1.6rem 0 .5rem; }
h1 a.at, h2 a.at, h3 a.at, h4 a.at { color: var(--soft); margin-left: .4rem; font-weight: 400; opacity: 0; }
h1:hover a.at, h2:hover a.at, h3:hover a.at, h4:hover a.at { opacity: 1; }
p, li { overflow-wrap: break-word; }
code { font: .875em/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; background: var(--tint); padding: .1em .3em; border-radius: 3px; overflow-wrap: anywhere; }
pre { background: var(--tint); border: 1px solid var(--line); border-radius: 6px; padding: .7rem .9rem; overflow-x: auto; line-height: 1.45; }
pre code { background: none; padding: 0; overflow-wrap: normal; white-space: pre; }
main > .wide { max-width: 100%; overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; font-size: .93rem; }
th, td { text-align: left; vertical-align: top; padding: .35rem .7rem .35rem 0; border-bottom: 1px solid var(--line); }
th:empty { padding: 0; border: 0; }
td:first-child { min-width: 7rem; }
td code { overflow-wrap: normal; }
blockquote { margin: 1rem 0; padding-left: 1rem; border-left: 3px solid var(--line); color: var(--soft); }
img { max-width: 100%; height: auto; }
@media (max-width: 820px) {
  .frame { display: block; }
  nav { border-right: 0; border-bottom: 1px solid var(--line); padding: .8rem 1rem; }
  nav .stick { position: static; max-height: none; }
  nav summary { display: list-item; cursor: pointer; padding: .5rem 0 0; color: var(--soft); }
  main { padding: .8rem 1rem 3rem; }
  h1 { font-size: 1.55rem; }
  td, th { padding-right: .5rem; }
  td:first-child { min-width: 4.5rem; }
}
'''

# Opens the menu where there is room for it, and finds headings while one types.
SCRIPT = '''
const menu = document.getElementById('menu');
if (window.matchMedia('(min-width: 821px)').matches) menu.open = true;
const ask = document.getElementById('ask'), found = document.getElementById('found');
let at = 0;
function show() {
  const words = ask.value.toLowerCase().split(/\\s+/).filter(w => w);
  found.textContent = '';
  if (!words.length) return;
  const hits = [];
  for (const [title, page, url, text] of INDEX) {
    const low = title.toLowerCase(), all = low + ' ' + page.toLowerCase() + ' ' + text.toLowerCase();
    if (!words.every(w => all.includes(w))) continue;
    const name = low.replace(/^mc_/, '');
    const rank = low === words.join(' ') || name === words.join(' ') ? 0 : name.startsWith(words[0]) ? 1 : words.every(w => low.includes(w)) ? 2 : 3;
    hits.push([rank, title, page, url]);
  }
  hits.sort((a, b) => a[0] - b[0]);
  for (const [rank, title, page, url] of hits.slice(0, 12)) {
    const li = document.createElement('li'), a = document.createElement('a'), small = document.createElement('small');
    a.href = HERE + url; a.textContent = title; small.textContent = page; a.append(small); li.append(a); found.append(li);
  }
  if (!hits.length) { const li = document.createElement('li'); li.textContent = 'nothing found'; found.append(li); }
  at = 0; mark();
}
function mark() { [...found.querySelectorAll('a')].forEach((a, i) => a.classList.toggle('on', i === at)); }
ask.addEventListener('input', show);
ask.addEventListener('keydown', e => {
  const all = found.querySelectorAll('a');
  if (e.key === 'ArrowDown' || e.key === 'ArrowUp') { at = Math.max(0, Math.min(all.length - 1, at + (e.key === 'ArrowDown' ? 1 : -1))); mark(); e.preventDefault(); }
  else if (e.key === 'Enter' && all[at]) location.href = all[at].href;
  else if (e.key === 'Escape') { ask.value = ''; show(); }
});
document.addEventListener('keydown', e => { if (e.key === '/' && document.activeElement !== ask) { ask.focus(); e.preventDefault(); } });
'''


def anchor_of(title):
    return re.sub(r'[^\w -]', '', title.lower()).replace(' ', '-')


def plain(markdown):
    """The words of a line of Markdown."""
    text = re.sub(r'!?\[([^\]]*)\]\([^)]*\)', r'\1', markdown)
    text = re.sub(r'</?code>', '', text)
    return html.unescape(re.sub(r'\\([*_|<`\\\[\]])', r'\1', text.replace('`', '').replace('**', '')))


class Document:
    """A file of Markdown: its blocks, read once, its headings and their anchors."""

    def __init__(self, path):
        self.path = path  # of the tree, without .md
        self.text = open(os.path.join(ROOT, path + '.md'), encoding='utf-8').read()
        self.url = 'index.html' if path == 'README' else re.sub(r'^docs/', '', path) + '.html'
        self.blocks = list(blocks(self.text.split('\n')))
        self.heads, seen = [], {}
        for block in self.blocks:
            if block[0] == 'head':
                name = anchor_of(plain(block[2]))
                n = seen.get(name, 0)
                seen[name] = n + 1
                self.heads.append(name + ('-%d' % n if n else ''))
        titles = [plain(b[2]) for b in self.blocks if b[0] == 'head']
        self.title = titles[0] if titles else os.path.basename(path)


def cells(line):
    """The cells of a row; a bar in code or behind a backslash is part of its cell."""
    line = line.strip().strip('|') if not line.rstrip().endswith('\\|') else line.strip().lstrip('|')
    return [c.strip() for c in re.split(r'(?<!\\)\|', line)]


def is_list(line):
    return re.match(r'(- |\* |\d+\. )', line)


def blocks(lines):
    """('head', level, text), ('code', info, text), ('table', rows), ('list', ordered, [lines]), ('quote', lines), ('p', text)"""
    i = 0
    while i < len(lines):
        line = lines[i]
        if not line.strip():
            i += 1
        elif line.startswith('```'):
            end = i + 1
            while end < len(lines) and not lines[end].startswith('```'):
                end += 1
            yield 'code', line[3:].strip(), '\n'.join(lines[i + 1:end])
            i = end + 1
        elif re.match(r'#{1,6} ', line):
            level = len(line.split(' ')[0])
            yield 'head', level, line[level:].strip()
            i += 1
        elif line.startswith('    '):
            end = i
            while end < len(lines) and (lines[end].startswith('    ') or not lines[end].strip()):
                end += 1
            yield 'code', '', '\n'.join(x[4:] for x in lines[i:end]).rstrip('\n')
            i = end
        elif line.startswith('|') and i + 1 < len(lines) and re.match(r'\|[\s:|-]+\|?\s*$', lines[i + 1]):
            end = i
            while end < len(lines) and lines[end].startswith('|'):
                end += 1
            yield 'table', [cells(x) for x in [lines[i]] + lines[i + 2:end]]
            i = end
        elif is_list(line):
            items = []
            ordered = line[0].isdigit()
            while i < len(lines) and (is_list(lines[i]) or (lines[i].startswith('  ') and lines[i].strip()) or
                                      (not lines[i].strip() and i + 1 < len(lines) and lines[i + 1].startswith('  '))):
                if is_list(lines[i]):
                    mark = re.match(r'(?:- |\* |\d+\. )', lines[i]).group(0)
                    items.append([lines[i][len(mark):]])
                else:
                    items[-1].append(re.sub(r'^ {2,3}', '', lines[i]))
                i += 1
            yield 'list', ordered, items
        elif line.startswith('>'):
            end = i
            while end < len(lines) and lines[end].startswith('>'):
                end += 1
            yield 'quote', [re.sub(r'^> ?', '', x) for x in lines[i:end]]
            i = end
        else:
            end = i
            while end < len(lines) and lines[end].strip() and not re.match(r'```|#{1,6} |\|', lines[end]) and \
                    not (end > i and is_list(lines[end])):
                end += 1
            end = max(end, i + 1)
            yield 'p', '\n'.join(lines[i:end])
            i = end


class Site:
    def __init__(self, out):
        self.out = out
        names = ['README', 'CONTRIBUTING', 'CHANGELOG']
        for folder in ('docs', 'docs/design', 'docs/api'):
            where = os.path.join(ROOT, folder)
            names += sorted(folder + '/' + f[:-3] for f in os.listdir(where) if f.endswith('.md'))
        self.documents = {n: Document(n) for n in names if os.path.exists(os.path.join(ROOT, n + '.md'))}
        self.copied, self.wrong = set(), []

    # ---- links ----

    def up(self, doc):
        return '../' * doc.url.count('/')

    def link(self, doc, target):
        """What an address of a document is on the site."""
        if re.match(r'[a-z]+:', target):
            return target
        path, _, part = target.partition('#')
        whole = os.path.normpath(os.path.join(os.path.dirname(doc.path), path)) if path else doc.path + '.md'
        to = self.documents.get(whole[:-3]) if whole.endswith('.md') else None
        if to:
            if part and part not in to.heads:
                self.wrong.append('%s.md: %s has no heading #%s' % (doc.path, whole, part))
            return self.up(doc) + to.url + ('#' + part if part else '')
        if whole.startswith('..') or not os.path.isfile(os.path.join(ROOT, whole)):
            self.wrong.append('%s.md: there is no %s' % (doc.path, target))
            return target
        self.copied.add(whole)
        return self.up(doc) + 'files/' + whole

    # ---- text ----

    def inline(self, doc, text, linked=False):
        """A line of Markdown as HTML; linked: within a link."""
        out, at = [], 0
        sign = re.compile(r'(`+)(.+?)\1|!\[([^\]]*)\]\(([^)\s]+)\)|\[((?:[^\[\]`]|`[^`]*`|!\[[^\]]*\]\([^)]*\))+)\]\(([^)\s]+)\)|'
                          r'\*\*(.+?)\*\*|(?<![\w*])\*(?=\S)([^*]+?)(?<=\S)\*(?![\w*])|\\([\\`*_{}\[\]()#+.!|<>-])|\\\n|'
                          r'(</?code>|<br>|&#?\w+;)|(https?://[^\s<>)`]*[^\s<>)`.,;:])', re.S)
        for m in sign.finditer(text):
            out.append(html.escape(text[at:m.start()], quote=False))
            at = m.end()
            ticks, code, alt, image, words, target, bold, slanted, literal, raw, address = m.groups()
            if code is not None:
                code = code.replace('\\|', '|')
                shown = html.escape(code.strip() if len(ticks) > 1 else code, quote=False)
                shown = '<code>%s</code>' % re.sub(r'(?<=\w)([/_])(?=\w)' if len(shown) > 28 else r'(?<=\w)(/)(?=\w)', r'\1<wbr>', shown)
                page = self.documents.get(code[:-3]) if code.endswith('.md') else None
                out.append('<a href="%s">%s</a>' % (self.up(doc) + page.url, shown) if page and not linked else shown)
            elif image is not None:
                out.append('<img src="%s" alt="%s">' % (html.escape(self.link(doc, image)), html.escape(alt)))
            elif target is not None:
                out.append('<a href="%s">%s</a>' % (html.escape(self.link(doc, target)), self.inline(doc, words, True)))
            elif bold is not None:
                out.append('<strong>%s</strong>' % self.inline(doc, bold, linked))
            elif slanted is not None:
                out.append('<em>%s</em>' % self.inline(doc, slanted, linked))
            elif literal is not None:
                out.append(html.escape(literal, quote=False))
            elif raw is not None:
                out.append(raw)
            elif address is not None:
                out.append('<a href="%s">%s</a>' % (html.escape(address), html.escape(address)) if not linked else html.escape(address))
            else:
                out.append('<br>\n')
        out.append(html.escape(text[at:], quote=False))
        return ''.join(out)

    def body(self, doc, parts, heads=None):
        out, head = [], iter(heads or [])
        for block in parts:
            kind = block[0]
            if kind == 'head':
                name = next(head)
                out.append('<h%d id="%s">%s<a class="at" href="#%s" aria-label="link to this heading">#</a></h%d>' %
                           (block[1], name, self.inline(doc, block[2]), name, block[1]))
            elif kind == 'code':
                out.append('<pre tabindex="0"><code>%s</code></pre>' % html.escape(block[2], quote=False))
            elif kind == 'table':
                rows = block[1]
                out.append('<div class="wide" tabindex="0"><table>')
                if any(rows[0]):
                    out.append('<thead><tr>%s</tr></thead>' % ''.join('<th>%s</th>' % self.inline(doc, c) for c in rows[0]))
                out += ['<tr>%s</tr>' % ''.join('<td>%s</td>' % self.inline(doc, c) for c in row) for row in rows[1:]]
                out.append('</table></div>')
            elif kind == 'list':
                tag = 'ol' if block[1] else 'ul'
                out.append('<%s>' % tag)
                for item in block[2]:
                    inner = self.body(doc, blocks(item))
                    one = re.fullmatch(r'<p>((?:(?!<p>).)*)</p>', inner, re.S)
                    out.append('<li>%s</li>' % (one.group(1) if one else inner))
                out.append('</%s>' % tag)
            elif kind == 'quote':
                out.append('<blockquote>%s</blockquote>' % self.body(doc, blocks(block[1])))
            else:
                out.append('<p>%s</p>' % self.inline(doc, block[1]))
        return '\n'.join(out)

    # ---- pages ----

    def menu(self, doc):
        named = {n for _, part in MENU for n in part}
        more = [n for n in self.documents if n not in named and not n.startswith('docs/api/')]
        out = []

        def entry(n, inner=''):
            d = self.documents[n]
            out.append('<li><a%s href="%s">%s</a>%s</li>' % (' class="here"' if d is doc else '', self.up(doc) + d.url,
                                                           html.escape(d.title, quote=False), inner))
        for title, part in MENU:
            part = [n for n in part if n in self.documents] + (more if title == LAST else [])
            out.append('<h2>%s</h2><ul>' % title)
            for n in part:
                entry(n)
                if n == 'docs/api/index' and doc.path.startswith('docs/api/'):
                    out.append('<li><ul>')
                    inside = re.findall(r'\]\(([\w-]+)\.md\)', self.documents[n].text)
                    for k in dict.fromkeys(inside):
                        if 'docs/api/' + k in self.documents and k != 'index':
                            entry('docs/api/' + k)
                    out.append('</ul></li>')
            out.append('</ul>')
        return '\n'.join(out)

    def page(self, doc):
        return '''<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>%s</title>
<link rel="stylesheet" href="%ssite.css">
<div class="frame">
<nav><div class="stick">
<a class="name" href="%sindex.html">Monochord</a>
<input id="ask" type="search" placeholder="Search (press /)" aria-label="Search" autocomplete="off">
<ul id="found"></ul>
<details id="menu"><summary>Contents</summary>
%s
</details>
</div></nav>
<main>
%s
</main>
</div>
<script>const HERE = '%s';</script>
<script src="%ssearch.js"></script>
</html>
''' % (html.escape(doc.title if doc.path == 'README' else doc.title + ' - Monochord', quote=False), self.up(doc), self.up(doc),
            self.menu(doc), self.body(doc, doc.blocks, doc.heads), self.up(doc), self.up(doc))

    def index(self):
        """A row for each heading: what it says, its page, its address, the words behind it."""
        rows = []
        for doc in self.documents.values():
            k = -1
            for i, block in enumerate(doc.blocks):
                if block[0] == 'head':
                    k += 1
                    words = next((plain(b[1]) for b in doc.blocks[i + 1:i + 4] if b[0] == 'p'), '')
                    words = re.sub(r'\s+', ' ', words)[:120]
                    rows.append([plain(block[2]), doc.title, doc.url + '#' + doc.heads[k], words])
        return rows

    def write(self):
        pages = {doc.url: self.page(doc) for doc in self.documents.values()}
        if self.wrong:
            sys.exit('site.py: ' + '\nsite.py: '.join(sorted(set(self.wrong))))
        if os.path.isdir(self.out) and os.listdir(self.out) and not os.path.exists(os.path.join(self.out, 'search.js')):
            sys.exit('site.py: %s is a folder with other files' % self.out)
        shutil.rmtree(self.out, ignore_errors=True)
        index = self.index()
        pages['site.css'] = CSS
        pages['search.js'] = 'const INDEX = %s;\n%s' % (json.dumps(index, ensure_ascii=False, separators=(',', ':')), SCRIPT)
        for url, text in pages.items():
            path = os.path.join(self.out, url)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, 'w', encoding='utf-8') as f:
                f.write(text)
        for name in self.copied:
            path = os.path.join(self.out, 'files', name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            shutil.copyfile(os.path.join(ROOT, name), path)
        print('wrote %s: %d pages, %d files, %d headings to search' % (os.path.join(self.out, 'index.html'), len(self.documents), len(self.copied), len(index)))


if len(sys.argv) > 2 or sys.argv[1:2] in (['-h'], ['--help']):
    sys.exit(__doc__)
Site(sys.argv[1] if sys.argv[1:] else os.path.join(ROOT, 'build', 'site')).write()
