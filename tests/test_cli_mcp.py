"""The commands around the server: configuration entries, completion, what must not be loaded."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from build import session
from scratch import Store
from terminal import Ran, environment, pipe


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    return home


def printed(home: Path, client: str, *options: str, **env: str) -> tuple[dict[str, Any], Ran]:
    """What was printed, as this client reads it."""
    ran = pipe(["mcp", "--print-config", client, *options], environment(home, **env))
    assert ran.status == 0, ran
    return (tomllib.loads if client == "codex" else json.loads)(ran.out), ran


@pytest.mark.parametrize(
    ("client", "under", "place"),
    [
        ("pi", "mcpServers", "{home}/.pi/agent/mcp.json"),
        ("claude", "mcpServers", ".mcp.json of a project, or mcpServers of ~/.claude.json"),
        ("codex", "mcp_servers", "~/.codex/config.toml"),
        ("vscode", "servers", ".vscode/mcp.json of a folder, or the user's mcp.json"),
    ],
)
def test_an_entry_for_each_client(client: str, under: str, place: str, home: Path) -> None:
    """Data on stdout, where it belongs on stderr; and it is a command that runs."""
    found, ran = printed(home, client, "--project", "my app", "--session", "")
    assert ran.err == f"sessionindex: belongs into {place.format(home=home)}\n"
    entry = found[under]["sessionindex"]
    assert os.path.isabs(entry["command"])
    options = ["--session", "", "--project", "my app"]
    assert entry["args"] == ["-P", "-m", "sessionindex", "mcp", *options]
    env = environment(home) | entry.get("env", {})
    done = subprocess.run(
        [entry["command"], *entry["args"]], env=env, stdin=subprocess.DEVNULL, capture_output=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_an_entry_has_absolute_paths_and_what_decides_where_things_are(home: Path) -> None:
    env = {"PI_CODING_AGENT_DIR": "pi", "XDG_CACHE_HOME": "/cache", "SESSIONINDEX_DIR": "~/i"}
    options = ["--root", "some/root", "--index-dir", "some/index", "--session", "s.jsonl"]
    found, _ = printed(home, "pi", *options, **env)
    entry = found["mcpServers"]["sessionindex"]
    here = os.getcwd()
    assert entry["args"][4:] == [
        *("--root", f"{here}/some/root"),
        *("--index-dir", f"{here}/some/index"),
        *("--session", f"{here}/s.jsonl"),
    ]
    assert entry["env"] == {
        "PI_CODING_AGENT_DIR": f"{here}/pi",
        "SESSIONINDEX_DIR": f"{home}/i",
        "XDG_CACHE_HOME": "/cache",
    }


def test_what_no_configuration_can_hold_is_refused(home: Path) -> None:
    ran = pipe(["mcp", "--print-config", "codex", "--root", "/a\nb"], environment(home))
    assert ran.status == 2
    assert "cannot be written down" in ran.err


def test_a_project_that_is_none_is_refused(home: Path) -> None:
    ran = pipe(["mcp", "--project", "a/b"], environment(home))
    assert ran.status == 2
    assert ran.err == "sessionindex: projects must be base names of working directories\n"


@pytest.fixture
def without_mcp(home: Path) -> dict[str, str]:
    """An environment in which the SDK is not installed, and where what is loaded is told."""
    folder = home / "hiding"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(
        "import sys\n"
        "class Hiding:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in ('mcp', 'mcp_types'):\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Hiding())\n"
    )
    return environment(home, PYTHONPATH=str(folder))


def test_without_the_extra_it_says_what_to_install(
    without_mcp: dict[str, str], store: Store
) -> None:
    """Everything else works: also the entry, for whoever installs it later."""
    ran = pipe(["mcp"], without_mcp)
    assert (ran.status, ran.out) == (2, "")
    assert "pip install 'sessionindex[mcp]'" in ran.err and ran.err.count("\n") == 1
    assert pipe(["mcp", "--print-config", "pi"], without_mcp).status == 0
    assert pipe(["mcp", "--help"], without_mcp).status == 0
    store.put("a", session("a").user("needle"))
    where = ["--root", str(store.root), "--index-dir", str(store.index_dir)]
    assert pipe(["search", "needle", *where], without_mcp).status == 0


@pytest.mark.parametrize(
    "arguments", [["search", "needle"], ["sessions"], ["call", "list_sessions"]]
)
def test_no_other_command_loads_what_the_server_needs(
    arguments: list[str], store: Store, home: Path
) -> None:
    store.put("a", session("a").user("needle"))
    code = (
        "import sys; from sessionindex.cli.app import run; run(sys.argv[1:]);"
        "print([m for m in ('mcp', 'asyncio', 'pydantic', 'sessionindex.serve',"
        " 'sessionindex.wire.schemas', 'sessionindex.budget') if m in sys.modules])"
    )
    where = ["--root", str(store.root), "--index-dir", str(store.index_dir)]
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments, *where], env=environment(home), capture_output=True
    )
    assert done.stdout.splitlines()[-1] == b"[]", done


def test_the_schemas_load_nothing(home: Path) -> None:
    """An installer needs them, and nothing else of the package."""
    code = (
        "import sys, sessionindex.wire.schemas;"
        "print(sorted(m for m in sys.modules if m.startswith('sessionindex')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(home), capture_output=True, text=True
    )
    names = ["", ".wire", ".wire.answer_schemas", ".wire.schemas"]
    assert done.stdout == f"{[f'sessionindex{name}' for name in names]}\n"


# --- completion ----------------------------------------------------------------------------------


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(shell: str, home: Path) -> None:
    ran = pipe(["completion", shell], environment(home))
    assert ran.status == 0
    assert f"_SESSIONINDEX_COMPLETE={shell}_complete" in ran.out


def test_another_shell_is_refused(home: Path) -> None:
    assert pipe(["completion", "csh"], environment(home)).status == 2


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("sessionindex sea", ["search"]),
        ("sessionindex search --ord", ["--order"]),
        ("sessionindex search --order new", ["newest"]),
        ("sessionindex completion z", ["zsh"]),
        ("sessionindex mcp --print-config v", ["vscode"]),
    ],
)
def test_what_is_completed(words: str, expected: list[str], home: Path) -> None:
    env = environment(
        home,
        COMP_WORDS=words,
        COMP_CWORD=str(len(words.split()) - 1),
        _SESSIONINDEX_COMPLETE="bash_complete",
    )
    ran = pipe([], env)
    assert (ran.status, ran.err) == (0, "")
    assert [line.partition(",")[2] for line in ran.out.split()] == expected


def test_bash_completes(home: Path) -> None:
    """The script, in a real bash."""
    python = shlex.quote(sys.executable)
    script = (
        f'sessionindex() {{ {python} -m sessionindex "$@"; }}\n'
        f"source <({python} -m sessionindex completion bash)\n"
        "complete -p sessionindex"
    )
    done = subprocess.run(
        ["bash", "-c", script], env=environment(home), capture_output=True, text=True
    )
    assert "_sessionindex_completion" in done.stdout, done


def test_search_has_five_examples(home: Path) -> None:
    ran = pipe(["search", "--help"], environment(home))
    assert ran.out.partition("Examples:")[2].count("sessionindex search") == 5
