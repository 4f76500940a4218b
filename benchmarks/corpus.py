"""Write a store of made-up Pi sessions of any size: seeded, fast, shaped like real ones.

Goal: what a search meets in real stores (sizes, entry kinds, byte shares, repeated details, long
signatures, delegated runs, forks) without a word of anybody's sessions, and needles whose number
of entries is known exactly.

Rules:
- The same seed and sizes give the same bytes below any root; each file has its own random stream.
- No text is cut from a pool: words, names and hashes are drawn afresh for each text by looking up
  random bytes in tables, so that a cut of twelve characters is mostly rare. A session does read
  its own documents again, and details repeat their result, as in real stores.
- A needle stands in a text searched by default: a user's, an assistant's or a tool result's. The
  entries a fork copies from its parent hold none, so none is counted twice.
- A planned needle is always planted: its file goes on until it is.
- A fork's `parentSession` names a path of the made-up home, not of the root written to.

Left out: older session versions, damaged lines, files that are no sessions; the tests have those.
"""

from __future__ import annotations

import argparse
import os
from base64 import b64encode
from bisect import bisect
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import accumulate
from random import Random
from statistics import NormalDist
from sys import intern
from typing import Any

import orjson

Entry = dict[str, Any]
Maker = Callable[..., str]  # of two lines of text

HOME = "/home/dev"
FIRST_DAY = int(datetime(2025, 8, 15, tzinfo=UTC).timestamp() * 1000)
YEAR_MS = 365 * 86_400_000
MEDIAN_BYTES, P90_BYTES = 220_000, 1_700_000
ENTRY_BYTES = 3_200  # the mean line of real sessions

COMMON = "yw_commonplace"
COMMON_SHARE = 0.42  # of the entries that can hold a needle; about 30 % of all
# Text, the most entries it is planted in, and how many entries of a corpus go for one of them.
NEEDLES = (
    ("xq-needle-once", 1, 0),
    ("xq-needle-ten", 10, 10),
    ("xq-needle-hundred", 100, 8),
    ('xq "needle"\nquoted', 20, 40),
    ("鑫鱻", 5, 60),
    ("^~", 7, 50),
)

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
TOOLS = ("bash", "read", "edit", "write", "grep", "find", "webfetch", "subagent")
TOOL_WEIGHTS = (56, 26, 9, 5, 2, 1, 1, 0.2)


@dataclass(frozen=True, slots=True)
class Needle:
    """A planted text and the number of entries that hold it."""

    text: str
    count: int


@dataclass(frozen=True, slots=True)
class Corpus:
    """What was written below `root`; `entries` leaves the headers out."""

    root: str
    files: int
    entries: int
    bytes: int
    needles: tuple[Needle, ...]


@dataclass(frozen=True, slots=True)
class _Plan:
    """One file to write, decided before anything is drawn for it."""

    path: str  # below the root
    cwd: str
    id: str
    start_ms: int
    size: int
    forks: int | None = None  # the number of the plan it forks
    shared: int = 0  # the bytes at its start that forks may copy
    runs: tuple[str, ...] = ()  # run ids of its delegated runs


class _Stock:
    """The tables that all texts are drawn from; a table's index is two random bytes."""

    def __init__(self, seed: int) -> None:
        rng = Random(f"{seed} stock")
        words = ENGLISH.split() + _invented(rng, 24_000)
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
        self.styles = {style: _cycled(_makers(lines)) for style, lines in STYLES.items()}
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


def _invented(rng: Random, count: int) -> list[str]:
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


def _cycled(values: list[Any]) -> list[Any]:
    return (values * (256 // len(values) + 1))[:256]


def _uuid(rng: Random, ms: int) -> str:
    tail = rng.randbytes(10).hex()
    return f"{ms >> 16:08x}-{ms & 0xFFFF:04x}-7{tail[:3]}-a{tail[3:6]}-{tail[6:18]}"


def _iso(ms: int) -> str:
    moment = datetime.fromtimestamp(ms // 1000, UTC)
    return f"{moment.replace(tzinfo=None).isoformat()}.{ms % 1000:03d}Z"


def _base64(rng: Random, length: int) -> str:
    return b64encode(rng.randbytes(length * 3 // 4)).decode()


class _Session:
    """The lines of one session file, in order, each one made when it is asked for."""

    def __init__(
        self, stock: _Stock, plan: _Plan, rng: Random, needles: Sequence[tuple[int, str]]
    ) -> None:
        self.stock, self.plan, self.rng = stock, plan, rng
        self.due = list(reversed(needles))  # by offset, the next one last
        self.planted: Counter[str] = Counter()
        self.paths = stock.paths(plan.cwd)
        self.local = rng.sample(stock.names, 48)  # names that its texts share
        self.docs: list[str] = []
        self.runs = list(plan.runs)
        self.ids: list[str] = []
        self.parent: str | None = None
        self.next_id = rng.getrandbits(32)
        self.clock = plan.start_ms
        self.size = 0
        self.compacted = 0
        self.model = ("anthropic", "claude-opus-4-5", "anthropic-messages")
        # A text is kept small beside its file, so that small files end near their size.
        self.longest = max(2_000, plan.size // 4)

    # Lines

    def header(self, parent_session: str | None) -> bytes:
        plan = self.plan
        head: Entry = {"type": "session", "version": 3, "id": plan.id}
        head |= {"timestamp": _iso(plan.start_ms), "cwd": plan.cwd}
        if parent_session is not None:
            head["parentSession"] = parent_session
        return self._line(head)

    def copied(self, lines: Sequence[bytes]) -> Iterator[bytes]:
        """Take over the first entries of the parent, ids and all, up to half of the file."""
        for line in lines:
            if self.size + len(line) > self.plan.size // 2:
                return
            entry = orjson.loads(line)
            self.parent = entry["id"]
            self.ids.append(entry["id"])
            self.size += len(line)
            # Half a turn away from the parent's ids, which walk with the same step.
            self.next_id = int(entry["id"], 16) ^ 0x80000000
            copied_at = int(datetime.fromisoformat(entry["timestamp"]).timestamp() * 1000)
            self.clock = max(self.clock, copied_at)
            yield line

    def lines(self) -> Iterator[bytes]:
        yield from self._opening()
        yield from self._user()
        while self.size < self.plan.size or self.due or self.runs:
            yield from self._round()
            chance = self.rng.random()
            if chance < 0.1:
                yield self._assistant([self._text_block()], "stop")
                yield from self._user()
            elif chance < 0.15:
                yield from self._aside()
            if self.size - self.compacted > 2_000_000:
                yield self._compaction()

    def _line(self, value: Entry) -> bytes:
        line = orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE)
        self.size += len(line)
        return line

    def _entry(self, kind: str, body: Entry, *, id_last: bool = False) -> bytes:
        self.clock += self.rng.randrange(150, 12_000)
        # An odd step walks through all 32 bits: the ids of a file never repeat.
        self.next_id = (self.next_id + 0x9E3779B1) & 0xFFFFFFFF
        ident = f"{self.next_id:08x}"
        links = {"id": ident, "parentId": self.parent, "timestamp": _iso(self.clock)}
        self.parent = ident
        self.ids.append(ident)
        return self._line(
            {"type": kind, **body, **links} if id_last else {"type": kind, **links, **body}
        )

    def _message(self, role: str, body: Entry) -> bytes:
        message = {"role": role, **body, "timestamp": self.clock}
        return self._entry("message", {"message": message})

    # Entries

    def _opening(self) -> Iterator[bytes]:
        yield self._model_change()
        yield self._thinking_level()
        if self.rng.random() < 0.3:
            yield self._entry("session_info", {"name": self._prose(40).strip()})
        if self.rng.random() < 0.5:
            data = {
                "phase": "idle",
                "path": self._path(),
                "notes": self._prose(self._length(300, 1)),
            }
            yield self._entry("custom", {"customType": "plan-mode", "data": data}, id_last=True)

    def _aside(self) -> Iterator[bytes]:
        chance = self.rng.random()
        if chance < 0.4:
            for _ in range(self.rng.randrange(1, 4)):
                yield self._thinking_level()
        elif chance < 0.5:
            yield self._model_change()
        elif chance < 0.72:
            body: Entry = {"customType": "reminder", "content": self._prose(self._length(300, 1))}
            body |= {"display": False, "details": {"words": self._number(16), "passed": False}}
            yield self._entry("custom_message", body, id_last=True)
        elif chance < 0.9:
            data = {"turn": self._number(8), "path": self._path(), "hash": f"{self._number(64):x}"}
            yield self._entry("custom", {"customType": "checkpoint", "data": data}, id_last=True)
        elif chance < 0.93:
            output = self._lines("shell", self._length(400, 1))
            shell: Entry = {"command": self._command(), "output": output, "exitCode": 0}
            yield self._message("bashExecution", shell | {"cancelled": False, "truncated": False})
        elif chance < 0.95:
            self.parent = self.rng.choice(self.ids)  # a branch
            yield from self._user()

    def _model_change(self) -> bytes:
        self.model = self.rng.choice(
            (
                ("anthropic", "claude-opus-4-5", "anthropic-messages"),
                ("openai-codex", "gpt-5.6-sol", "openai-codex-responses"),
                ("opencode", "mimo-v2.5-free", "openai-completions"),
            )
        )
        return self._entry("model_change", {"provider": self.model[0], "modelId": self.model[1]})

    def _thinking_level(self) -> bytes:
        level = self.rng.choice(("off", "low", "medium", "high"))
        return self._entry("thinking_level_change", {"thinkingLevel": level})

    def _compaction(self) -> bytes:
        self.compacted = self.size
        files = self.rng.sample(self.paths, 12)
        summary = "## Goal\n" + self._lines("markdown", self.rng.randrange(4_000, 18_000))
        body: Entry = {"summary": summary, "firstKeptEntryId": self.ids[-min(len(self.ids), 20)]}
        body |= {"tokensBefore": 90_000 + self._number(16), "fromHook": False}
        return self._entry(
            "compaction", body | {"details": {"readFiles": files, "modifiedFiles": []}}
        )

    def _user(self) -> Iterator[bytes]:
        text = self._prose(self._length(82, 2.0, 14_000))
        yield self._message("user", {"content": [{"type": "text", "text": self._planted(text)}]})

    def _assistant(self, blocks: list[Entry], stop: str) -> bytes:
        rng = self.rng
        provider, model, api = self.model
        content = [self._thinking(), *blocks] if rng.random() < 0.5 else blocks
        body: Entry = {"content": content, "api": api, "provider": provider, "model": model}
        fresh, out, cached = self._number(12), self._number(10), self._number(17)
        cost = {"input": fresh * 5e-6, "output": out * 3e-5, "cacheRead": cached * 5e-7}
        body["usage"] = {"input": fresh, "output": out, "cacheRead": cached, "cacheWrite": 0}
        body["usage"] |= {"totalTokens": fresh + out + cached}
        body["usage"]["cost"] = cost | {"cacheWrite": 0, "total": sum(cost.values())}
        body["stopReason"] = stop
        if stop in ("aborted", "error"):
            body |= {"content": [], "errorMessage": f"Request was {stop}. {self._prose(40)}"}
        body["responseId"] = f"resp_{rng.randbytes(25).hex()}"
        return self._message("assistant", body)

    def _thinking(self) -> Entry:
        rng = self.rng
        chance = rng.random()
        if chance < 0.12:
            text = ""
        elif chance < 0.4:
            text = f"**{self._prose(rng.randrange(20, 54)).strip()}**"
        else:
            text = self._prose(self._length(290, 1.0))
        signature = _base64(rng, self._length(700, 1.0, 65_000))
        return {"type": "thinking", "thinking": text, "thinkingSignature": signature}

    def _text_block(self) -> Entry:
        length = self._length(100, 1.7, 16_000)
        text = self._prose(length) if length < 600 else self._lines("markdown", length)
        return {"type": "text", "text": self._planted(text)}

    def _round(self) -> Iterator[bytes]:
        """One answer with its tool calls, then their results."""
        rng = self.rng
        if rng.random() < 0.02:
            yield self._assistant([], rng.choice(("aborted", "aborted", "error")))
            return
        blocks = [self._text_block()] if rng.random() < 0.42 else []
        results: list[Entry] = []
        for _ in range(rng.choices((1, 2, 3), (86, 11, 3))[0]):
            name = "subagent" if self.runs else rng.choices(TOOLS, TOOL_WEIGHTS)[0]
            arguments, text, details = TOOL_MAKERS[name](self)
            call = f"call_{_base64(rng, 24)}|fc_{rng.randbytes(24).hex()}"
            blocks.append({"type": "toolCall", "id": call, "name": name, "arguments": arguments})
            result: Entry = {"toolCallId": call, "toolName": name}
            result["content"] = [{"type": "text", "text": text}]
            if details is not None:
                result["details"] = details
            results.append(result | {"isError": rng.random() < 0.05})
        yield self._assistant(blocks, "toolUse")
        for result in results:
            if rng.random() < 1 / 300:
                data = "iVBORw0KGgo" + _base64(rng, self._length(25_000, 0.8, 300_000))
                result["content"].append({"type": "image", "data": data, "mimeType": "image/png"})
            yield self._message("toolResult", result)

    # Tools: arguments, text and details of one call

    def bash(self) -> tuple[Entry, str, Entry | None]:
        text = self._planted(self._output(self._length(400, 2.2, 51_000)))
        details = None
        if len(text) > 32_000:
            details = _truncation(text) | {
                "fullOutputPath": f"/var/log/pi-bash-{self._number(64):x}.log"
            }
        return {"command": self._command()}, text, details

    def read(self) -> tuple[Entry, str, Entry | None]:
        doc = self._doc()
        start = self.rng.randrange(len(doc)) if self.rng.random() < 0.3 else 0
        text = self._planted(doc[start : start + self._length(5_000, 1.3, 51_000)])
        details = _truncation(text) if self.rng.random() < 0.07 else None
        return {"path": self._path(), "offset": start // 40 + 1, "limit": 400}, text, details

    def edit(self) -> tuple[Entry, str, Entry | None]:
        doc, path, rng = self._doc(), self._path(), self.rng
        start = rng.randrange(len(doc))
        length = self._length(300, 1.0, 9_000)
        old = doc[start : start + length]
        new = self._lines(rng.choice(CODE), length)
        around = doc[max(0, start - 200) : start], doc[start + length : start + length + 200]
        marked = [(" ", around[0]), ("-", old), ("+", new), (" ", around[1])]
        rows = [(mark, row) for mark, part in marked for row in part.splitlines()]
        first = self._number(9)
        diff = "\n".join(f"{mark}{first + i:>4} {row}" for i, (mark, row) in enumerate(rows))
        patch = f"--- {path}\n+++ {path}\n@@ -{first},{len(rows)} @@\n"
        patch += "\n".join(mark + row for mark, row in rows)
        text = self._planted(f"Successfully replaced 1 block(s) in {path}.")
        details = {"diff": diff, "patch": patch, "firstChangedLine": first}
        return {"path": path, "edits": [{"oldText": old, "newText": new}]}, text, details

    def write(self) -> tuple[Entry, str, Entry | None]:
        path, doc = self._path(), self._new_doc()
        text = self._planted(f"Successfully wrote {len(doc)} bytes to {path}")
        return {"path": path, "content": doc}, text, None

    def grep(self) -> tuple[Entry, str, Entry | None]:
        text = self._planted(self._lines("grep", self._length(4_000, 1.2, 36_000)))
        pattern = f"{self._word()}|{self._word()}\\("
        return {"pattern": pattern, "path": "src"}, text, {"_type": "grepResult", "text": text}

    def find(self) -> tuple[Entry, str, Entry | None]:
        text = self._planted("\n".join(self.rng.choices(self.paths, k=self.rng.randrange(1, 60))))
        return {"pattern": f"**/*{self._word()}*"}, text, {"_type": "findResult", "text": text}

    def webfetch(self) -> tuple[Entry, str, Entry | None]:
        text = self._planted(self._prose(self._length(12_000, 1.0, 50_000)))
        return {"url": f"https://{self._word()}.dev/{self._word()}?q={self._word()}"}, text, None

    def subagent(self) -> tuple[Entry, str, Entry | None]:
        """A delegated run: its details carry the transcript."""
        task, left = self._prose(self._length(600, 0.8)), self._length(20_000, 1.0, 365_000)
        run = self.runs.pop(0) if self.runs else _uuid(self.rng, self.clock)
        messages: list[Entry] = [{"role": "user", "content": [{"type": "text", "text": task}]}]
        while left > 0:
            part = self._output(self._length(2_500, 1.2, 30_000))
            messages.append({"role": "assistant", "content": [self._thinking()]})
            messages.append({"role": "toolResult", "content": [{"type": "text", "text": part}]})
            left -= len(part) + 1_500
        text = self._planted(self._lines("markdown", self._length(2_500, 1.0)))
        result = {"agent": "researcher", "task": task, "exitCode": 0, "messages": messages}
        details = {"mode": "single", "runId": run, "results": [result | {"finalOutput": text}]}
        return {"agent": "researcher", "task": task}, text, details

    # Text

    def _length(self, median: float, spread: float, most: int = 20_000) -> int:
        drawn = int(median * self.rng.lognormvariate(0, spread)) + 12
        return min(drawn, most, self.longest)

    def _number(self, bits: int) -> int:
        return self.rng.getrandbits(bits)

    def _path(self) -> str:
        return self.rng.choice(self.paths)

    def _word(self) -> str:
        return self.rng.choice(self.stock.names)

    def _command(self) -> str:
        return self._lines("shell", self._length(110, 0.9)).replace("\n", "; ")

    def _doc(self) -> str:
        """A file of the project, often one that was read before."""
        if self.docs and self.rng.random() < 0.6:
            return self.rng.choice(self.docs)
        self.docs = [*self.docs[-7:], self._new_doc()]
        return self.docs[-1]

    def _new_doc(self) -> str:
        return self._lines(self.rng.choice(CODE), self._length(3_500, 1.2, 60_000))

    def _output(self, length: int) -> str:
        style = self.rng.choice(OUTPUT)
        if style == "prose":
            return self._prose(length)
        if style == "cjk":
            return "".join(self._drawn(self.stock.cjk, length // 6 + 1))[: length // 3 + 1]
        return self._lines(style, length)

    def _prose(self, length: int) -> str:
        text = "".join(self._drawn(self.stock.prose, length // 6 + 3))[:length]
        return text[:1].upper() + text[1:]

    def _lines(self, style: str, length: int) -> str:
        rng = self.rng
        count = length // self.stock.widths[style] + 2
        names = [*self._drawn(self.stock.names, 8), *self.local]
        near = _cycled(names).__getitem__
        drawn = zip(
            map(self.stock.styles[style].__getitem__, rng.randbytes(count)),
            map(self.paths.__getitem__, rng.randbytes(count)),
            map(near, rng.randbytes(count)),
            map(near, rng.randbytes(count)),
            memoryview(rng.randbytes(8 * count)).cast("Q"),
            memoryview(rng.randbytes(2 * count)).cast("H"),
            strict=True,
        )
        word = self._drawn(self.stock.prose, 12 * count).__next__  # no line has more than 6
        lines = [make(p, a, b, h, n, word) for make, p, a, b, h, n in drawn]
        return "".join(lines)[:length]

    def _drawn(self, table: list[str], count: int) -> Iterator[str]:
        places = memoryview(self.rng.randbytes(2 * count)).cast("H")
        return map(table.__getitem__, places)

    def _planted(self, text: str) -> str:
        """The text with the needles that are due, all at one place between two words."""
        if self.size < self.plan.shared:
            return text
        needles = [COMMON] if self.rng.random() < COMMON_SHARE else []
        if self.due and self.due[-1][0] <= self.size:
            needles.append(self.due.pop()[1])
        if not needles:
            return text
        self.planted.update(needles)
        at = text.find(" ", self.rng.randrange(len(text) + 1))
        at = len(text) if at < 0 else at
        return f"{text[:at]} {' '.join(needles)} {text[at:]}"


TOOL_MAKERS: dict[str, Callable[[_Session], tuple[Entry, str, Entry | None]]] = {
    name: getattr(_Session, name) for name in TOOLS
}


def _truncation(text: str) -> Entry:
    lines = text.count("\n") + 1
    facts: Entry = {"content": text, "truncated": True, "truncatedBy": "lines"}
    return {"truncation": facts | {"totalLines": lines + 400, "outputLines": lines}}


def write(root: str, *, megabytes: float, seed: int = 1, files: int | None = None) -> Corpus:
    """Write a store of about that many megabytes below `root`, and say what is in it.

    `files` counts every session file, delegated runs and forks included; without it the sizes
    decide. Files already below `root` are not looked at.
    """
    total = int(megabytes * 1_000_000)
    plans = _plans(Random(f"{seed} plan"), total, files)
    needles = _places(Random(f"{seed} needles"), [plan.size for plan in plans])
    stock = _Stock(seed)
    planted: Counter[str] = Counter()
    shared: dict[int, list[bytes]] = {}  # of the plans with forks: what these may copy
    entries = written = 0
    for number, plan in enumerate(plans):
        session = _Session(stock, plan, Random(f"{seed} file {number}"), needles[number])
        path = os.path.join(root, plan.path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb", buffering=1 << 20) as out:
            if plan.forks is None:
                out.write(session.header(None))
            else:
                parent = f"{HOME}/.pi/agent/sessions/{plans[plan.forks].path}"
                out.write(session.header(parent))
                out.writelines(session.copied(shared.get(plan.forks, [])))
            for line in session.lines():
                if session.size < plan.shared:
                    shared.setdefault(number, []).append(line)
                out.write(line)
        planted += session.planted
        entries += len(session.ids)
        written += session.size
    texts = [text for text, _, _ in NEEDLES]
    counts = tuple(Needle(text, planted[text]) for text in (*texts, COMMON))
    return Corpus(root, len(plans), entries, written, counts)


def _sizes(rng: Random, total: int, files: int | None) -> list[int]:
    """Log-normal sizes with that sum, in random order."""
    curve = NormalDist()
    power = 1 / curve.inv_cdf(0.9)

    def drawn(count: int) -> list[float]:
        places = (curve.inv_cdf((i + 0.5) / count) * power for i in range(count))
        return [MEDIAN_BYTES * (P90_BYTES / MEDIAN_BYTES) ** place for place in places]

    if files is None:
        guess = max(64, total // 800_000)
        mean = sum(drawn(guess)) / guess
        files = max(round(total / mean), min(6, total // 100_000), 1)
    sizes = drawn(files)
    scale = total / sum(sizes)
    rng.shuffle(sizes)
    return [max(1, int(size * scale)) for size in sizes]


def _plans(rng: Random, total: int, files: int | None) -> list[_Plan]:
    sizes = _sizes(rng, total, files)
    words = _invented(rng, 2 * (len(sizes) // 30 + 3))
    projects = [f"{a}-{b}" for a, b in zip(words[::2], words[1::2], strict=True)]
    plans: list[_Plan] = []
    while len(plans) < len(sizes):
        left = len(sizes) - len(plans) - 1
        # The first session delegates, so that small stores have children too.
        delegates = not plans or rng.random() < 0.1
        forks = min(rng.choice((1, 1, 2)) if delegates else 0, left)
        runs = min(rng.randrange(1, 5) if delegates else 0, left - forks)
        family = sizes[len(plans) : len(plans) + 1 + runs + forks]
        plans += _family(rng, rng.choice(projects), len(plans), family, runs)
    return plans


def _family(rng: Random, project: str, number: int, sizes: list[int], runs: int) -> list[_Plan]:
    """A session, then its delegated runs, then its forks; `number` is the session's own."""
    cwd, folder = f"{HOME}/src/{project}", f"--home-dev-src-{project}--"
    start = FIRST_DAY + rng.randrange(YEAR_MS)
    ident = _uuid(rng, start)
    stem = f"{folder}/{_stem(start, ident)}"
    size, run_sizes, fork_sizes = sizes[0], sizes[1 : 1 + runs], sizes[1 + runs :]
    children: list[_Plan] = []
    run_ids: list[str] = []
    for i, child_size in enumerate(run_sizes):
        later = start + rng.randrange(60_000, 3_600_000)
        if i % 2 == 0:  # two parallel runs for one call
            run_ids.append(_uuid(rng, later))
        path = f"{stem}/{run_ids[-1]}/run-{i % 2}/session.jsonl"
        children.append(_Plan(path, cwd, _uuid(rng, later), later, child_size))
    for child_size in fork_sizes:
        later = start + rng.randrange(60_000, 3_600_000)
        own = _uuid(rng, later)
        path = f"{stem}/forks/{_stem(later, own)}.jsonl"
        children.append(_Plan(path, cwd, own, later, child_size, forks=number))
    shared = min(size, max(fork_sizes)) // 2 if fork_sizes else 0
    parent = _Plan(f"{stem}.jsonl", cwd, ident, start, size, shared=shared, runs=tuple(run_ids))
    return [parent, *children]


def _stem(ms: int, ident: str) -> str:
    return _iso(ms).replace(":", "-").replace(".", "-") + "_" + ident


def _places(rng: Random, sizes: Sequence[int]) -> list[list[tuple[int, str]]]:
    """For each file the offsets from which a needle is due, rising."""
    ends = list(accumulate(sizes))
    places: list[list[tuple[int, str]]] = [[] for _ in sizes]
    for text, most, spared in NEEDLES:
        count = min(most, ends[-1] // ENTRY_BYTES // spared) if spared else most
        for offset in (rng.randrange(ends[-1]) for _ in range(count)):
            number = bisect(ends, offset)
            places[number].append((offset - ends[number] + sizes[number], text))
    return [sorted(due) for due in places]


def main() -> None:
    parser = argparse.ArgumentParser(description="Write a store of made-up Pi sessions.")
    parser.add_argument("root")
    parser.add_argument("--megabytes", type=float, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--files", type=int)
    parser.add_argument("--json", action="store_true", help="print what was written as JSON")
    given = parser.parse_args()
    corpus = write(given.root, megabytes=given.megabytes, seed=given.seed, files=given.files)
    if given.json:
        print(orjson.dumps(asdict(corpus)).decode())
        return
    print(f"{corpus.files} files, {corpus.entries} entries, {corpus.bytes} bytes")
    for needle in corpus.needles:
        print(f"{needle.count:>9} entries hold {needle.text!r}")


if __name__ == "__main__":
    main()
