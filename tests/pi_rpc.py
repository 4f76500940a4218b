"""The real Pi in RPC mode, with a provider that follows a script, in a scratch home.

Nothing is waited for by the clock: a test waits for what Pi says, and a stream that has to stay
open waits for a file (`{"wait": place.gate}`).
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pi_home import Installed
from terminal import Ran, pipe

import sessionindex
from sessionindex import SessionIndex

Record = dict[str, Any]
PROVIDER = Path(__file__).parent / "pi" / "fake_provider.mjs"
SAMPLE = Path(sessionindex.__file__).parent / "sample"
PATIENCE_S = 30
SETTINGS: Record = {
    "defaultProvider": "fake",
    "defaultModel": "fake-1",
    "retry": {"enabled": False},
    "compaction": {"enabled": False, "keepRecentTokens": 20},
}


def soon(test: Callable[[], bool]) -> None:
    """Wait for something of which nobody gives word."""
    limit = time.monotonic() + PATIENCE_S
    while not test():
        assert time.monotonic() < limit
        time.sleep(0.01)


class Place:
    """The home of somebody who uses Pi: agent folder, project, what the model will say."""

    def __init__(self, installed: Installed, top: Path) -> None:
        self.installed = installed
        self.top = top
        self.agent = top / "agent"
        self.project = top / "project"
        self.gate = str(top / "gate")
        self.log = top / "requests.jsonl"
        for folder in (self.agent / "extensions", self.project, top / "tmp"):
            folder.mkdir(parents=True)
        self.settings()
        self.script()

    @property
    def env(self) -> dict[str, str]:
        """Of every process: nothing of whoever runs the tests but where programs are."""
        kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
        return kept | {
            "HOME": str(self.top),
            "TMPDIR": str(self.top / "tmp"),
            "NODE_COMPILE_CACHE": str(self.installed.folder / "compiled"),
            "TZ": "UTC",
            "LANG": "C.UTF-8",
            "PI_CODING_AGENT_DIR": str(self.agent),
            "SESSIONINDEX_DIR": str(self.top / "index"),
        }

    @property
    def fake(self) -> dict[str, str]:
        """Where the provider finds what it says, and puts what it was asked."""
        return {"FAKE_SCRIPT": str(self.top / "script.json"), "FAKE_LOG": str(self.log)}

    # --- what there is ---------------------------------------------------------------------------

    def settings(self, **more: Any) -> None:
        (self.agent / "settings.json").write_text(json.dumps(SETTINGS | more))

    def surgery(self, **configuration: Any) -> None:
        """The configuration of trimming."""
        path = self.agent / "extensions" / "session-surgery.json"
        path.write_text(json.dumps(configuration))

    def script(self, *steps: Any) -> None:
        """What the model answers, a step a request, from the start of a Pi on."""
        self.steps = list(steps)
        (self.top / "script.json").write_text(json.dumps(self.steps))

    def open_gate(self) -> None:
        Path(self.gate).touch()

    def appears(self, name: str) -> None:
        """Wait until a program of the test has made this file."""
        soon((self.top / name).exists)

    def past(self) -> None:
        """Past sessions: the sample."""
        shutil.copytree(SAMPLE, self.agent / "sessions", dirs_exist_ok=True)

    def extension(self, name: str, source: str) -> None:
        """Another extension, found beside ours."""
        (self.agent / "extensions" / f"{name}.js").write_text(source)

    # --- ours ------------------------------------------------------------------------------------

    @property
    def ours(self) -> Path:
        return self.agent / "extensions" / "sessionindex.js"

    def run(self, *arguments: str) -> Ran:
        """`sessionindex ARGUMENTS` by its owner."""
        return pipe(arguments, self.env)

    def install(self) -> None:
        ran = self.run("pi", "install")
        assert ran.status == 0, ran
        assert self.ours.exists()

    def edited(self, old: str, new: str) -> None:
        """Change the installed extension in one place."""
        source = self.ours.read_text()
        assert source.count(old) == 1, old
        self.ours.write_text(source.replace(old, new))

    def instead(self, program: str | Path) -> None:
        """Have the installed extension start another program than the Python that installed it."""
        self.edited(json.dumps(sys.executable), json.dumps(str(program)))

    def wrapped(self, script: str) -> None:
        """Have it start a shell script; "$PYTHON" "$@" in there is what it would have started."""
        program = self.top / "wrapper"
        program.write_text(f"#!/bin/sh\nPYTHON='{sys.executable}'\n{script}\n")
        program.chmod(0o755)
        self.instead(program)

    @contextmanager
    def library(self, **given: Any) -> Iterator[SessionIndex]:
        """The library over the same sessions."""
        known: Record = {"settings": {}, "current_session": ""}
        root, index = self.agent / "sessions", self.top / "library"
        with SessionIndex(root, index_dir=index, **known | given) as opened:
            yield opened

    # --- Pi --------------------------------------------------------------------------------------

    @contextmanager
    def pi(self, *options: str, noise: str = "", **env: str) -> Iterator[Pi]:
        """Pi from its start to an orderly end; `noise` is what it says on stderr."""
        child = Pi(self, options, self.env | env)
        try:
            yield child
            assert child.end() == 0
            assert child.stderr() == noise
            assert not child.all("extension_error")
        except BaseException:
            print(child.story(), file=sys.stderr)
            raise
        finally:
            child.kill()

    def printed(self, question: str) -> str:
        """What Pi prints that is asked on its command line."""
        command = [*self.installed.command, "--offline", "-e", str(PROVIDER), "-p", question]
        done = subprocess.run(
            command,
            cwd=self.project,
            env=self.env | self.fake,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE_S,
        )
        assert (done.returncode, done.stderr) == (0, b""), done
        return done.stdout.decode()

    def requests(self) -> list[Record]:
        """What the provider was asked, of all Pis that were here."""
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def leftovers(self) -> list[str]:
        """Files of a trim that nobody took away."""
        folders = ((self.agent, ".sessionindex-*"), (self.top / "tmp", "sessionindex-*"))
        return [str(path) for folder, name in folders for path in folder.rglob(name)]


class Pi:
    """A running Pi."""

    def __init__(self, place: Place, options: Sequence[str], env: dict[str, str]) -> None:
        self.place = place
        self.records: list[Record] = []
        self._news = threading.Condition()
        self._count = 0
        command = [*place.installed.command, "--mode", "rpc", "--offline", "-e", str(PROVIDER)]
        self._errors = tempfile.TemporaryFile(dir=place.top)  # noqa: SIM115 (closed by kill)
        self._child = subprocess.Popen(
            [*command, *options],
            cwd=place.project,
            env={"PI_TELEMETRY": "0"} | place.fake | env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._child.stdout is not None
        for line in self._child.stdout:  # bytes: ends at LF only
            with self._news:
                self.records.append(json.loads(line))
                self._news.notify_all()
        with self._news:
            self.records.append({"type": "end of output"})
            self._news.notify_all()

    # --- waiting ---------------------------------------------------------------------------------

    @property
    def mark(self) -> int:
        """A point in what Pi said, for what is to come after it."""
        return len(self.records)

    def until(self, test: Callable[[Record], Any], since: int = 0) -> Record:
        """The first record since a mark that passes; Pi gets half a minute to say it."""
        at = since

        def came() -> Record | None:
            nonlocal at
            while at < len(self.records):
                at += 1
                if test(self.records[at - 1]):
                    return self.records[at - 1]
            if self.records and self.records[-1]["type"] == "end of output":
                raise AssertionError("Pi ended")
            return None

        with self._news:
            got = self._news.wait_for(came, PATIENCE_S)
        assert got is not None, "Pi did not say what was waited for"
        return got

    def event(self, type: str, since: int = 0, **fields: Any) -> Record:
        """The first record of this type and with these fields."""
        wanted = {"type": type, **fields}
        return self.until(lambda one: wanted.items() <= _flat(one).items(), since)

    def said(self, text: str, since: int = 0) -> None:
        """Wait for a delta of the model that begins like this."""
        self.until(
            lambda one: one.get("assistantMessageEvent", {}).get("delta", "").startswith(text),
            since,
        )

    def all(self, type: str) -> list[Record]:
        return [one for one in self.records if one["type"] == type]

    @property
    def notices(self) -> list[str]:
        """What extensions told the user, notices and status lines alike."""
        asked = self.all("extension_ui_request")
        texts = [one.get("message") if one["method"] == "notify" else one.get("statusText")
                 for one in asked if one["method"] in ("notify", "setStatus")]  # fmt: skip
        return [text for text in texts if text]

    def noticed(self, text: str, since: int = 0) -> str:
        """Wait until the user is told this; the whole of what was said."""

        def told(one: Record) -> str:
            both = one.get("message"), one.get("statusText")
            found = [said for said in both if isinstance(said, str) and text in said]
            return found[0] if one["type"] == "extension_ui_request" and found else ""

        return told(self.until(told, since))

    # --- telling ---------------------------------------------------------------------------------

    def post(self, type: str, **fields: Any) -> str:
        """A command whose answer is not waited for; its id."""
        self._count += 1
        ident = f"c{self._count}"
        self._write({"id": ident, "type": type, **fields})
        return ident

    def answer(self, ident: str) -> Any:
        """What was answered to a command; it must have succeeded."""
        got = self.event("response", id=ident)
        assert got["success"], got
        return got.get("data")

    def send(self, type: str, **fields: Any) -> Any:
        return self.answer(self.post(type, **fields))

    def reply(self, asked: Record, **fields: Any) -> None:
        """The user's answer to an extension."""
        self._write({"type": "extension_ui_response", "id": asked["id"], **fields})

    def _write(self, value: Record) -> None:
        assert self._child.stdin is not None
        self._child.stdin.write(json.dumps(value).encode() + b"\n")
        self._child.stdin.flush()

    def prompt(self, message: str, **fields: Any) -> None:
        """A prompt, and all that comes of it."""
        since = self.mark
        self.send("prompt", message=message, **fields)
        self.event("agent_settled", since)

    def command(self, text: str) -> None:
        """A slash command of an extension, to its end."""
        assert self.send("prompt", message=text)["disposition"] == "handled"

    def returned(self, code: str) -> Any:
        """What a codemode script of the model returns."""
        place, since = self.place, self.mark
        step = {"tool": "codemode", "args": {"code": f"return JSON.stringify(await {code})"}}
        place.script(*place.steps, step, "Done.")
        self.prompt("Run a script.")
        ended = self.event("tool_execution_end", since, toolName="codemode")
        said = [part["text"] for part in ended["result"]["content"]]
        assert said[0].startswith("Script completed"), said
        return json.loads(said[1])

    # --- the session -----------------------------------------------------------------------------

    @property
    def file(self) -> Path:
        return Path(self.send("get_state")["sessionFile"])

    def end(self) -> int:
        """Close its stdin; how it ended."""
        assert self._child.stdin is not None
        self._child.stdin.close()
        status = self._child.wait(PATIENCE_S)
        self._reader.join(PATIENCE_S)
        return status

    def stderr(self) -> str:
        self._errors.seek(0)
        return self._errors.read().decode()

    def signal(self, number: signal.Signals) -> int:
        """End it from outside; how it ended."""
        self._child.send_signal(number)
        return self._child.wait(PATIENCE_S)

    def kill(self) -> None:
        if self._child.poll() is None:
            self._child.kill()
            self._child.wait()
        self._reader.join(PATIENCE_S)
        for stream in (self._child.stdin, self._child.stdout, self._errors):
            assert stream is not None
            stream.close()

    def story(self) -> str:
        """For whoever has to find out what went wrong."""
        told = [json.dumps(one)[:400] for one in self.records[-25:]]
        return "\n".join([*told, "stderr:", self.stderr()])


def _flat(record: Record) -> Record:
    """The fields that can be compared."""
    return {name: one for name, one in record.items() if isinstance(one, str | int | None)}
