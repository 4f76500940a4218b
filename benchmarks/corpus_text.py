"""The words of made-up sessions: prose, code, output and names, drawn afresh for each text.

A `Stock` is made of a seed: tables of 65,536 places, so that a text is drawn by looking up random
bytes, two for each word, name or line. That makes a cut of twelve characters mostly rare, as in
real stores, and it is fast. The words follow Zipf's law: English ones first, invented ones after.
Code, output and documents are lines of a style with names, numbers and words put in.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from sys import intern
from typing import Any

Maker = Callable[..., str]  # of two lines of text

ENGLISH = """the of and to in a is that for it this on with as are be not you or from at by we if
can will have has was but an all so which do use file when one code there should then
only no they test what would time new now your make does more its set out need get
into my like up some also other any first after where how run been line than these
here two same just each error still call them name both may since path add because
before change were let list value check its must between return read way type could
work fix without using over about data made see used back through string while under
function case even most lines index know while had who very every look might once
input output such key write start server user too build long being many point already
next again works order another last right off keep message text command above left
below end part want client size those second find says changes move page try help
given current result own exists state tests found step free least different instead
means small open whole never against take main files question three memory review
done number wrong think reason safe better request best simple full local update
branch sure place come enough go old either why went clear direct default existing
likely missing report seems during within across almost always away began behind
bring close complete cost deep down early easy effect empty ensure expect explain
fact far fast few follow form good great hand hard high hold idea inside issue kept
kind large late later less level light little longer low match much near note okay
per plan possible problem put quick quite rather real remove run seen several short
show side since single slow something soon stay stop sub table tell thing though
together toward true turn until view wait well worth year yet"""
PAIRS = """of the,in the,in this,to the,on the,it is,for the,and the,to be,that the,is not,with the,
from the,so that,if the,this is,as a,do not,there is,at the,we need,and then""".replace("\n", "")
ONSETS = (
    "b bl br c ch cl cr d dr f fl fr g gl gr h j k kn l m n p ph pl pr qu r s sc sh sk sl sn sp"
)
ONSETS += " st str sw t th tr tw v w wh y z"
VOWELS = "a e i o u ai ea ee ie io oa oo ou"
CODAS = " b ck d ft g l ld ll m mp n nd ng nk nt p r rd rk rm rn rt s sh sk ss st t th x"
ENDINGS = " ed er ing ion ity ly ment ness s able"
CJK = "的一是在不了有和人这中大为上个国我以要他时来用们生到作地于出就分对成会可主发年动同工也能下过"
KANA = "ファイルをテストしていますコードのエラーから修正"
EMOJI = "✅ 🚀 ⚠️ ❌ 🔧 📦 🎉 👉 📝 🔍 💡 👩‍💻"
# What stands behind a word instead of a space; a bar ends a mark.
MARKS = """{}, |{}, |{}. |{}. The |{}. It |{}: |{}.
|{}.

- |`{}` |**{}** |"{}" |({}) |{}’s |{} — |{}; |{}? |{}/|{}-"""

# Lines of text, made f-strings of: p is a path, a and b are names, h is a number of 64 bits, n one
# of 16, and w() is a word of prose with its own space or mark behind it.
FIELDS = "p, a, b, h, n, w"
TYPESCRIPT = """import {{ {a}, {b} }} from "../{p}";
export async function {a}({b}: string): Promise<{a}> {{
  const {a} = await {b}.{a}({n});
  const {b} = {a}.map(({b}) => {b}.{a} ?? "{w()}");
  if ({a} === undefined || {b}.length > {n}) {{
    throw new Error(`{w()}{w()}{w()}${{{a}}} in {p}`);
    return {{ {a}, {b}: {n}, id: "{h:x}" }};
  }}
  // {w()}{w()}{w()}
    this.{a}.set("{b}", {a} as {b});
}}

  readonly {a}?: Map<string, {b}>;
    assert.deepEqual({a}({b}), [{n}, "{w()}"]);
test("{w()}{w()}{w()}", async () => {{"""
PYTHON = """from {a}.{b} import {a}
def {a}(self, {b}: str = "{w()}") -> None:
    \"\"\"{w()}{w()}{w()}\"\"\"
    if not {a}.{b}({n}):
        raise ValueError(f"{w()}{w()}{{{a}!r}}")
    self.{a} = [{b} for {b} in {a} if {b}.{a} != {n}]
    return {a}({b}, key=r"\\{a}\\s+{b}")

    with open("{p}", encoding="utf-8") as {a}:
# {w()}{w()}{w()}
    assert {a} == {{"{b}": {n}, "digest": "{h:016x}"}}"""
SHELL = """{h:016x} {w()}{w()}{w()}
commit {h:016x}{n:04x}{h:08x}
-rw-r--r-- 1 dev dev {n:>6} Aug 12 09:14 {p}
drwxr-xr-x {n} {p}
$ {a} --{b}={n} {p} | grep -n "{w()}" && echo '{a}'
 M {p}
Compiling {a} v0.{n} ({p})
warning: unused variable: `{b}` [{h:x}]
  at {a} ({p}:{n}:13)
{n} passed, 1 failed in {n}.02s
npm ERR! {a}@{n}.0.1 {w()}{w()}{w()}
│ {a} │ {n:>8} │ {w()}{w()}│
├───────────┼──────────┼──────────┤
{h:08x}  {n:02x} 00 7f 45 4c 46 |.ELF.{a}|"""
ANSI = """\x1b[32m✓\x1b[39m {p} \x1b[2m({n}ms)\x1b[22m {w()}{w()}
\x1b[31m✗ {w()}{w()}{w()}\x1b[0m [{h:x}]
\x1b[1m\x1b[33m{a}\x1b[39m\x1b[22m {p}:{n}
   \x1b[36m→\x1b[39m {b} expected {n} to be "{h:x}\""""
JSON = """{{"id":"{h:016x}","path":"{p}","{a}":{n},"msg":"{w()}\\"{b}\\" {w()}"}}
{{"level":30,"time":{10**12 + h % 10**11},"name":"{a}","err":"C:\\\\dev\\\\{b}\\n{w()}{w()}"}}
  "{a}": {{ "{b}": [{n}, null, true, "{h:x}"] }},"""
GREP = """{p}:{n}:  const {a} = {b}({w()}{w()});
{p}-{n}-  // {w()}{w()}{w()}
{p}:{n}: return {a}.{b};
--"""
MARKDOWN = """## {w()}{w()}{w()}
- {w()}{w()}{w()}`{a}` {w()}{w()}{w()}(see `{p}:{n}`)
{w()}{w()}{w()}{w()}{w()}
| `{a}` | {n} | {w()}{w()}|
```ts
{a}.{b}({n});
```
1. {w()}{w()}**{a}** {w()}{w()}
"""
ODD = """{a}\t{p}\t{n}\r
Volume {h:X} {w()}{w()}\r
�\x01�{a}�{h:x}��
\x0c{w()}{w()}{w()}"""
STYLES = {
    "typescript": TYPESCRIPT,
    "python": PYTHON,
    "shell": SHELL,
    "ansi": ANSI,
    "json": JSON,
    "grep": GREP,
    "markdown": MARKDOWN,
    "odd": ODD,
}
CODE = ("typescript", "typescript", "python", "markdown", "json")
OUTPUT = ("shell", "shell", "shell", "grep", "json", "ansi", "typescript", "prose", "cjk", "odd")


class Stock:
    """The tables that all texts are drawn from; a table's index is two random bytes."""

    def __init__(self, seed: int) -> None:
        rng = Random(f"{seed} stock")
        words = ENGLISH.split() + invented(rng, 24_000)
        zipf = [1.0 / (rank + 1.5) for rank in range(len(words))]
        scale = 47_000 / sum(zipf)
        deck = [w for w, z in zip(words, zipf, strict=True) for _ in range(max(1, int(z * scale)))]
        deck += rng.choices(words, k=65_536 - len(deck))
        marks = MARKS.split("|")
        self.prose = [_marked(rng, word, marks) for word in deck]
        pairs, emoji = PAIRS.split(","), EMOJI.split()
        for at in rng.sample(range(65_536), 2_600):
            self.prose[at] = rng.choice(pairs) + " "
        for at in rng.sample(range(65_536), 260):
            self.prose[at] = rng.choice((rng.choice(emoji) + " ", _cut(rng, CJK), _cut(rng, KANA)))
        self.names = _names(rng, deck)
        ends = ("", "", "，", "。\n")
        self.cjk = [_cut(rng, CJK + KANA) + rng.choice(ends) for _ in range(4_096)] * 16
        self.styles = {style: cycled(_makers(lines)) for style, lines in STYLES.items()}
        # One object for equal words: the common ones then stay in the processor's cache.
        self.prose = [intern(word) for word in self.prose]
        # How long their lines are, so that no more of them are made than a text needs.
        sample = ("p" * 28, "name", "name", 1 << 48, 9999, lambda: "word  ")
        self.widths = {
            style: sum(len(maker(*sample)) for maker in makers) // 256
            for style, makers in self.styles.items()
        }

    def paths(self, project: str) -> list[str]:
        rng = Random(project)
        tops = ("src", "src", "test", "docs", "lib")
        folders = [f"{top}/{rng.choice(self.names)}" for top in tops]
        ends = ("ts", "ts", "tsx", "py", "md", "json")
        parts = (rng.choices(choices, k=256) for choices in (folders, self.names, ends))
        return [f"{folder}/{name}.{end}" for folder, name, end in zip(*parts, strict=True)]


def invented(rng: Random, count: int) -> list[str]:
    """Different words that sound like some, in the order in which they are drawn."""
    words: dict[str, None] = {}
    onsets, vowels = ONSETS.split(), VOWELS.split()
    codas, endings = CODAS.split(" "), ENDINGS.split(" ")
    while len(words) < count:
        syllables = rng.choices((1, 2, 3), (2, 5, 3))[0]
        parts = [rng.choice(onsets) + rng.choice(vowels) for _ in range(syllables)]
        words["".join(parts) + rng.choice(codas) + rng.choice(endings)] = None
    return list(words)


def _marked(rng: Random, word: str, marks: list[str]) -> str:
    if rng.random() < 0.82:
        return word + " "
    return rng.choice(marks).format(word)


def _names(rng: Random, words: list[str]) -> list[str]:
    parts = zip(*(rng.sample(words, len(words)) for _ in range(3)), strict=True)
    forms = ("{0}_{1}", "{0}{3}{4}", "{0}{3}", "{1}{4}", "{2}")
    return [
        forms[i % 5].format(a, b, c, b.capitalize(), c.capitalize())
        for i, (a, b, c) in enumerate(parts)
    ]


def _cut(rng: Random, signs: str) -> str:
    return "".join(rng.choices(signs, k=rng.randrange(1, 5)))


def _makers(style: str) -> list[Maker]:
    """A function for each two lines of the style, which then share their names and numbers."""
    lines = style.split("\n")
    pairs = [f"{one}\n{two}\n" for one in lines for two in lines]
    # Compiled once: str.format would read its template again for each line.
    return [eval(f"lambda {FIELDS}: f{pair!r}") for pair in pairs]


def cycled(values: list[Any]) -> list[Any]:
    """The values, again and again until there are 256: a byte is an index."""
    return (values * (256 // len(values) + 1))[:256]
