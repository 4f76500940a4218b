// made by sessionindex; `sessionindex pi uninstall` takes it away, `sessionindex pi install` renews it
//
// Goal: sessionindex inside Pi, and never a Pi that is disturbed by it. What is found, marked and
// trimmed is decided by `sessionindex`; here it is only asked, with what Pi alone knows: the running
// session, its leaf, the settings, trust.
//
// Rules:
// - Nothing throws out of a handler, and nothing waits for long. Trouble is one notice, then silence.
// - Tools and the command are registered when a session starts, and only where their names are free:
//   a name that is taken in the factory would end Pi.
// - Every stream and child has an `error` listener: without one, a missing program would end Pi.
// - One child answers all calls of a session. It is started once more after it died, then no more.
// - Trimming: prepared beside, compared by Pi itself, committed and loaded again in one step in which
//   nothing else runs. Anything unexpected takes the prepared file away and ends trimming here until
//   the session is loaded again.

import { spawn, spawnSync } from "node:child_process";
import {
	appendFileSync, closeSync, copyFileSync, existsSync, fstatSync, mkdtempSync, openSync, readSync, rmSync, statSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { StringDecoder } from "node:string_decoder";
import * as agent from "@earendil-works/pi-coding-agent";

// Filled in by the installer.
const COMMAND = "@COMMAND@";
const OPTIONS = "@OPTIONS@";
const ENVIRONMENT = "@ENVIRONMENT@";
const TOOLS = "@TOOLS@";

const STEERING_MS = 300;
const CALL_MS = 300_000;
const TRIM_MS = 15_000;
const STOP_MS = 2_000;
const TRIES = 3;
const AGAIN = "Trimming is off until this session is loaded again.";

/** What decides where things are, for a child: Pi's own word, and no stale session of another Pi. */
function environment(file) {
	const known = { ...ENVIRONMENT, ...process.env, PI_SESSION_FILE: file };
	if (typeof agent.getAgentDir === "function") known.PI_CODING_AGENT_DIR = resolve(agent.getAgentDir());
	return known;
}

/** Where Pi keeps this session's file and its neighbours, unless the installer was told a root. */
function whereabouts(ctx) {
	const folder = ctx.sessionManager.getSessionDir();
	if (OPTIONS.includes("--root") || !folder) return OPTIONS;
	const path = resolve(folder);
	const root = /^--.*--$/.test(basename(path)) ? [dirname(path), "projects"] : [path, "flat"];
	return ["--root", root[0], "--layout", root[1], ...OPTIONS];
}

/** The running session's file, absolute; "" where there is none. */
function fileOf(ctx) {
	const file = ctx.sessionManager.getSessionFile();
	return file ? resolve(file) : "";
}

/** A child of this program with listeners for everything that can go wrong. */
function started(args, file, { onData, onEnd }) {
	let said = "";
	let over = false;
	const end = (status, reason) => {
		if (over) return;
		over = true;
		onEnd(status, said.trim().split("\n").at(-1) || reason);
	};
	let child;
	try {
		child = spawn(COMMAND[0], [...COMMAND.slice(1), ...args], { env: environment(file), windowsHide: true });
	} catch (error) {
		setImmediate(() => end(null, error.message));
		return { write() {}, hold() {}, stop() {} };
	}
	child.on("error", (error) => end(null, error.message));
	child.on("close", (code, signal) => end(code, `it ended with ${signal ?? `status ${code}`}`));
	for (const stream of [child.stdin, child.stdout, child.stderr]) stream?.on("error", () => {});
	const [out, err] = [new StringDecoder("utf8"), new StringDecoder("utf8")];
	child.stdout?.on("data", (chunk) => { if (!over) onData(out.write(chunk)); });
	child.stderr?.on("data", (chunk) => { said = (said + err.write(chunk)).slice(-2000); });
	return {
		write(text) { child.stdin?.write(text); },
		/** Whether Pi has to stay for it. */
		hold(busy) {
			for (const one of [child, child.stdin, child.stdout, child.stderr]) one?.[busy ? "ref" : "unref"]?.();
		},
		/** End it; at an interrupt it takes away what it has not finished. With a reason it is over now. */
		stop(reason) {
			child.stdin?.end();
			child.kill("SIGINT");
			setTimeout(() => {
				child.kill("SIGKILL");
				for (const stream of [child.stdin, child.stdout, child.stderr]) stream?.destroy();
				end(null, "it did not end");
			}, STOP_MS).unref();
			if (!reason) return;
			said = "";
			end(null, reason);
		},
	};
}

/** The child that answers calls, a JSON line each. `gaveUp` hears once why there will be no more. */
function calls(gaveUp) {
	const waiting = new Map();
	let [args, file, child, starts, count, closed] = [[], "", null, 0, 0, null];
	const start = () => {
		let rest = "";
		starts += 1;
		child = started(args, file, {
			onData(text) {
				const lines = (rest + text).split("\n"); // at LF only, as they are written
				rest = lines.pop();
				for (const line of lines) answered(line);
			},
			onEnd(_status, reason) {
				if (closed) return;
				if (starts < 2) {
					start();
					for (const one of waiting.values()) child.write(one.line);
					return;
				}
				close(`sessionindex does not answer: ${reason}`);
				gaveUp(closed);
			},
		});
		child.hold(waiting.size > 0);
	};
	const answered = (line) => {
		const { id, result, error } = printed(line) ?? {};
		// What comes too late was asked all the same; anything else is no answer to us.
		if (!(Number.isInteger(id) && id > 0 && id <= count)) return child.stop("it answers nonsense");
		waiting.get(id)?.settle(error === undefined ? null : new Error(error), result);
	};
	const close = (reason) => {
		closed = reason;
		child?.stop();
		for (const one of [...waiting.values()]) one.settle(new Error(reason));
	};
	return {
		close,
		get closed() { return closed; },
		/** Have it ready before the first call, because a steering message does not wait for long. */
		open(where, session) {
			[args, file] = [["call", "--serve", ...where], session];
			if (!child && !closed) start();
		},
		call(request, { signal, patience } = {}) {
			return new Promise((done, fail) => {
				if (closed) return fail(new Error(closed));
				if (signal?.aborted) return fail(new Error("aborted"));
				if (!child) return fail(new Error("this session has not begun"));
				const id = ++count;
				const abort = () => settle(new Error("aborted"));
				const timer = setTimeout(() => {
					settle(new Error("sessionindex does not answer: it takes too long"));
					if (!patience) child.stop("it takes too long");
				}, patience ?? CALL_MS);
				const settle = (error, result) => {
					if (!waiting.delete(id)) return;
					clearTimeout(timer);
					signal?.removeEventListener("abort", abort);
					child.hold(waiting.size > 0);
					if (error) fail(error);
					else done(result);
				};
				const line = `${JSON.stringify({ id, ...request })}\n`;
				waiting.set(id, { line, settle });
				signal?.addEventListener("abort", abort, { once: true });
				child.hold(true);
				child.write(line);
			});
		},
	};
}

/** How long a trim may take: nobody waits for it longer than for a bad disk. */
function patience(file) {
	return TRIM_MS + (existsSync(file) ? Math.ceil(statSync(file).size / 10_000) : 0);
}

/** What changes when a file is replaced. */
function stamp(file) {
	const { ino, size, ctimeMs } = statSync(file);
	return `${ino} ${size} ${ctimeMs}`;
}

/** One command from beginning to end: {status, out, reason}; never rejects. `job` can stop it. */
function ran(args, file, job) {
	return new Promise((done) => {
		let [out, late] = ["", false];
		const child = started(args, file, {
			onData(text) { out += text; },
			onEnd(status, reason) {
				clearTimeout(timer);
				done({ status, out, reason: late ? "it took too long" : reason });
			},
		});
		const timer = setTimeout(() => {
			late = true;
			child.stop();
		}, patience(file));
		job.stop = () => child.stop();
		if (job.cancelled) child.stop();
	});
}

/** The JSON that a command printed, or null. */
function printed(text) {
	try {
		return JSON.parse(text);
	} catch {
		return null;
	}
}

/** All that Pi makes of a session, as one text: two that are equal are the same to the model. */
function seen(manager) {
	const { entries, messages, model, thinkingLevel } = manager.buildSessionProjection();
	const records = manager.getBranch().filter(
		(one) => /^custom(_message)?$/.test(one.type) && one.customType !== "ide-nested-results",
	);
	return JSON.stringify([
		manager.getSessionId(), manager.getLeafId(), manager.getSessionName(), model, thinkingLevel, messages,
		entries.map((one) => one.sourceEntry.id), records.map((one) => one.id),
	]);
}

/** What Pi makes of a prepared file with the lines that came into `path` after its first `size` bytes. */
function seenPrepared(prepared, path, size) {
	const folder = mkdtempSync(join(tmpdir(), "sessionindex-")); // Pi may rewrite what it opens
	try {
		const copy = join(folder, basename(path));
		copyFileSync(prepared, copy);
		const source = openSync(path, "r");
		try {
			const tail = Buffer.alloc(Math.max(0, fstatSync(source).size - size));
			const got = tail.length && readSync(source, tail, 0, tail.length, size);
			appendFileSync(copy, tail.subarray(0, got));
		} finally {
			closeSync(source);
		}
		return seen(agent.SessionManager.open(copy));
	} finally {
		rmSync(folder, { recursive: true, force: true });
	}
}

export default function (pi) {
	const told = new Set();
	const nobody = { cancelled: true, stop() {} };
	let ctxNow = null;
	let alive = true;
	let job = nobody;
	let trimming = true;
	let marks = Promise.resolve();

	const notify = (text, level = "info") => {
		try {
			if (alive) ctxNow?.ui.notify(text, level);
		} catch {
			// A session that has gone has nobody to tell.
		}
	};
	const notifyOnce = (text) => {
		if (told.has(text)) return;
		told.add(text);
		notify(text, "warning");
	};
	/** A handler that keeps its trouble to itself. */
	const on = (event, handler) => pi.on(event, async (happened, ctx) => {
		try {
			ctxNow = ctx;
			return await handler(happened, ctx);
		} catch (error) {
			notifyOnce(`sessionindex: ${error?.message ?? error}`);
		}
	});

	/** The part of Pi's settings that is ours; what cannot be read is a bound that cannot be read. */
	const settings = () => {
		try {
			const { piRetrospect } = pi.getSettings();
			return piRetrospect === undefined ? {} : { piRetrospect };
		} catch {
			return { piRetrospect: { allowedProjects: 0 } };
		}
	};
	const server = calls((reason) => notifyOnce(`${reason}. Its tools are off until this session is loaded again.`));
	/** A call with what Pi knows of the session that it is made in. */
	const call = (tool, params, ctx, how, more = {}) => {
		const file = fileOf(ctx);
		const leafId = ctx.sessionManager.getLeafId() ?? "";
		const session = file ? { session: file } : {};
		return server.call({ tool, params, ...session, leafId, currentSession: file, settings: settings(), ...more }, how);
	};

	// --- tools -----------------------------------------------------------------------------------

	const register = () => {
		const taken = new Set(pi.getAllTools().map((tool) => tool.name));
		const free = TOOLS.filter((tool) => !taken.has(tool.name));
		for (const { name, label, description, parameters, outputSchema, annotations } of free) {
			pi.registerTool({
				name, label, description, parameters, outputSchema, annotations, exposure: "codemode",
				async execute(id, params, signal, _update, ctx) {
					const toolCallId = String(id).replace(/\/[0-9]+$/, ""); // a script's calls are its own
					const result = await call(name, params ?? {}, ctx, { signal }, { toolCallId });
					return { content: [{ type: "text", text: JSON.stringify(result) }], structuredContent: result, details: {} };
				},
			});
		}
		const skipped = TOOLS.filter((tool) => taken.has(tool.name)).map((tool) => tool.name);
		if (skipped.length) notifyOnce(`sessionindex: another extension has these tools already: ${skipped.join(", ")}`);
		const active = pi.getActiveTools();
		if (free.length && taken.has("codemode") && !active.includes("codemode")) pi.setActiveTools([...active, "codemode"]);
	};

	on("session_start", (_event, ctx) => {
		server.open(whereabouts(ctx), fileOf(ctx));
		register();
		if (pi.getCommands().some((command) => command.name === "session-surgery"))
			notifyOnce("sessionindex: another extension has the command /session-surgery already");
		else pi.registerCommand("session-surgery", { description: "Rewrite this session without tool calls, into a new file", handler: surgery });
	});

	on("session_shutdown", () => {
		alive = false;
		cancel();
		server.close("the session has ended");
	});

	// --- steering --------------------------------------------------------------------------------

	on("input", (event, ctx) => {
		const { text, source, streamingBehavior } = event;
		if (streamingBehavior !== "steer" || source === "extension") return { action: "continue" };
		// One after the other: a message never overtakes the one before it. Images stay where they are.
		const mark = marks
			.then(() => call("mark_steering", { text, source, streamingBehavior }, ctx, { patience: STEERING_MS }))
			.catch(() => ({ action: "continue" }));
		marks = mark;
		return mark;
	});

	// --- trimming --------------------------------------------------------------------------------

	const cancel = () => {
		job.cancelled = true;
		job.stop();
		job = nobody;
	};
	for (const event of ["session_tree", "session_before_switch", "session_before_fork", "session_before_compact"])
		on(event, () => cancel());

	const turnOff = (reason) => {
		trimming = false;
		notifyOnce(`${reason}. ${AGAIN}`);
	};
	/** What a trim of the running session is told. */
	const trimArgs = (ctx, file) => [
		...whereabouts(ctx), "--current-session", file, "--settings", JSON.stringify(settings()),
	];

	on("session_compact", async (_event, ctx) => {
		const file = fileOf(ctx);
		if (!trimming || !file || server.closed) return;
		cancel();
		const mine = { cancelled: false, stop() {} };
		job = mine;
		const stop = () => { if (job === mine) cancel(); };
		ctx.signal?.addEventListener("abort", stop, { once: true });
		try {
			await trim(ctx, file, mine);
		} catch (error) {
			turnOff(`Trimming stopped: ${error?.message ?? error}`);
		} finally {
			ctx.signal?.removeEventListener("abort", stop);
			if (job === mine) job = nobody;
		}
	});

	const trim = async (ctx, file, mine) => {
		const manager = ctx.sessionManager;
		if (typeof manager.setSessionFile !== "function" || typeof agent.SessionManager?.open !== "function")
			throw new Error("this Pi cannot load a rewritten session");
		const session = manager.getSessionId();
		const common = trimArgs(ctx, file);
		const trusted = ctx.isProjectTrusted() ? ["--trusted"] : [];
		for (let tries = 1; ; tries += 1) {
			const leaf = manager.getLeafId();
			const first = ["trim", file, "--prepare", `--leaf=${leaf}`, `--project=${ctx.cwd}`, ...trusted, ...common];
			const { out, reason } = await ran(first, file, mine);
			const made = printed(out);
			let report = null;
			try {
				if (mine.cancelled) return;
				if (!made?.report) throw new Error(reason);
				if (!made.token) report = made.report;
				// From here to the end of it nothing else of Pi runs.
				else report = commit(manager, made, { file, session, leaf, common });
			} finally {
				if (made?.token && report?.outcome !== "trimmed")
					await ran(["trim", `--discard=${made.token}`, ...common], file, { stop() {} });
			}
			// What Pi wrote before the file was read, a command or a name, has moved the leaf on.
			const on = manager.getLeafId() !== leaf && !moved(manager, file, session, leaf);
			if (report.outcome === "refused" && on && tries < TRIES) continue;
			if (report.outcome === "refused") turnOff(report.message);
			else if (report.outcome === "trimmed") setTimeout(() => notify(report.message), 0); // after the redraw
			return;
		}
	};

	/** Compare, replace and load again; the report. Throws where any of it is not as it should be. */
	const commit = (manager, made, { file, session, leaf, common }) => {
		const why = moved(manager, file, session, leaf);
		if (why) throw new Error(why);
		if (seen(manager) !== seenPrepared(made.prepared, file, made.snapshotBytes))
			throw new Error("Pi would see another context");
		const [before, end] = [stamp(file), manager.getLeafId()];
		const done = spawnSync(COMMAND[0], [...COMMAND.slice(1), "trim", `--commit=${made.token}`, ...common], {
			env: environment(file), timeout: patience(file), killSignal: "SIGKILL", maxBuffer: 1 << 24, windowsHide: true,
		});
		if (existsSync(file) && stamp(file) !== before) {
			manager.setSessionFile(file); // whatever the command said: what is there now is what counts
			if (manager.getLeafId() !== end) throw new Error("the session was replaced and ends elsewhere: load it again");
		}
		const report = printed(String(done.stdout ?? ""));
		if (report?.outcome) return report;
		const said = String(done.stderr ?? "").trim().split("\n").at(-1);
		throw new Error(done.error?.message || said || `it ended with ${done.signal ?? `status ${done.status}`}`);
	};

	/** Why the session is not the one that was prepared; what was only appended to it is carried. */
	const moved = (manager, file, session, leaf) => {
		const path = manager.getSessionFile();
		if (!path || resolve(path) !== file || manager.getSessionId() !== session) return "another session is open";
		const last = manager.getEntries().at(-1)?.id;
		if (last !== manager.getLeafId() || !manager.getBranch().some((one) => one.id === leaf)) return "the leaf is elsewhere";
		return null;
	};

	// --- the command -----------------------------------------------------------------------------

	const surgery = async (_args, ctx) => {
		try {
			ctxNow = ctx;
			await ctx.waitForIdle();
			await rewrite(ctx);
		} catch (error) {
			notify(`sessionindex: ${error?.message ?? error}`, "error");
		}
	};

	const rewrite = async (ctx) => {
		const [file, manager] = [fileOf(ctx), ctx.sessionManager];
		if (!file || !existsSync(file)) return notify("There is nothing to rewrite yet");
		if (manager.getEntries().at(-1)?.id !== manager.getLeafId())
			return notify("Go to the end of this session first: its last entry is on another branch", "warning");
		const args = ["trim", file, "--transcript", "--force", "--json", ...trimArgs(ctx, file)];
		const preview = await ran([...args, "--dry-run"], file, { stop() {} });
		const plan = printed(preview.out);
		if (plan?.outcome !== "planned") return notify(plan?.message ?? preview.reason, "warning");
		const rows = Object.entries(plan.dropped).map(([kind, one]) => `${kind}: ${one.entries} (${one.bytes} bytes)`);
		const text = [plan.message, "", "What goes:", ...rows, "", "The old session stays as it is. The new one opens now."];
		if (!(await ctx.ui.confirm("Rewrite this session without tool calls?", text.join("\n")))) return;
		const done = await ran([...args, "--yes"], file, { stop() {} });
		const report = printed(done.out);
		if (!report?.newPath) return notify(report?.message ?? done.reason, "error");
		const switched = await ctx.switchSession(report.newPath, {
			withSession: async (next) => next.ui.notify(report.message, "info"),
		});
		if (switched.cancelled) notify(`The rewritten session is ${report.newPath}`);
	};
}
