"""One made-up session: its entries and tool calls, line after line, until it is as long as planned.

Its `Plan` is decided before anything is drawn for its file, and a `Session` makes each line when it
is asked for: memory is a line and the documents that the session reads again. What is due of the
needles is planted in the texts that are searched by default, at one place between two words, and
a file goes on until all of its needles are planted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from random import Random
from typing import Any

import orjson
from corpus_plan import Plan, base64, iso, uuid
from corpus_text import CODE, OUTPUT, Stock, cycled

Entry = dict[str, Any]

COMMON = "yw_commonplace"
COMMON_SHARE = 0.42  # of the entries that can hold a needle; about 30 % of all
TOPIC, FRESH = 600, 3  # words that share their words; how many of them go for a new one
INDENTS = (0, 2, 4, 4, 8)
TOOLS = ("bash", "read", "edit", "write", "grep", "find", "webfetch", "subagent")
TOOL_WEIGHTS = (56, 26, 9, 5, 2, 1, 1, 0.2)


class Session:
    """The lines of one session file, in order, each one made when it is asked for."""

    def __init__(
        self, stock: Stock, plan: Plan, rng: Random, needles: Sequence[tuple[int, str]]
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
        head |= {"timestamp": iso(plan.start_ms), "cwd": plan.cwd}
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
        links = {"id": ident, "parentId": self.parent, "timestamp": iso(self.clock)}
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
        signature = base64(rng, self._length(700, 1.0, 65_000))
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
            call = f"call_{base64(rng, 24)}|fc_{rng.randbytes(24).hex()}"
            blocks.append({"type": "toolCall", "id": call, "name": name, "arguments": arguments})
            result: Entry = {"toolCallId": call, "toolName": name}
            result["content"] = [{"type": "text", "text": text}]
            if details is not None:
                result["details"] = details
            results.append(result | {"isError": rng.random() < 0.05})
        yield self._assistant(blocks, "toolUse")
        for result in results:
            if rng.random() < 1 / 300:
                data = "iVBORw0KGgo" + base64(rng, self._length(25_000, 0.8, 300_000))
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
        run = self.runs.pop(0) if self.runs else uuid(self.rng, self.clock)
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
        near = cycled(names).__getitem__
        numbers = memoryview(rng.randbytes(8 * (2 + min(count // 4, 200)))).cast("Q")
        drawn = zip(
            map(self.stock.styles[style].__getitem__, rng.randbytes(count)),
            map(self.paths.__getitem__, rng.randbytes(count)),
            map(near, rng.randbytes(count)),
            map(near, rng.randbytes(count)),
            map(cycled(list(numbers)).__getitem__, rng.randbytes(count)),
            map(cycled([number & 0x3FFF for number in numbers]).__getitem__, rng.randbytes(count)),
            strict=True,
        )
        word = self._drawn(self.stock.prose, 12 * count).__next__  # no line has more than 6
        text = "".join([make(p, a, b, h, n, word) for make, p, a, b, h, n in drawn])
        if style in CODE:
            text = text.replace("\n", "\n" + " " * rng.choice(INDENTS))
        return text[:length]

    def _drawn(self, table: list[str], count: int) -> Iterator[str]:
        """So many words: a text says again what it said already, the longer the more."""
        rng = self.rng
        for start in range(0, count, TOPIC):
            size = min(TOPIC, count - start)
            places = memoryview(rng.randbytes(2 * (8 + size // FRESH))).cast("H")
            said = cycled([table[place] for place in places])
            yield from map(said.__getitem__, rng.randbytes(size))

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


TOOL_MAKERS: dict[str, Callable[[Session], tuple[Entry, str, Entry | None]]] = {
    name: getattr(Session, name) for name in TOOLS
}


def _truncation(text: str) -> Entry:
    lines = text.count("\n") + 1
    facts: Entry = {"content": text, "truncated": True, "truncatedBy": "lines"}
    return {"truncation": facts | {"totalLines": lines + 400, "outputLines": lines}}
