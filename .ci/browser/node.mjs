// The programs under test: a node with a demo's rates under the names of the real sources, in a temporary directory,
// and the mail server that keeps its e-mails. Both listen only on this machine.
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import PostalMime from "postal-mime";
import { SMTPServer } from "smtp-server";

const patience = 120_000; // milliseconds, for a start or a letter
const program = path.join(process.env.PROJECT, "tasard");
const run = promisify(execFile);
const running = new Set();
const letters = new Map(); // address: what came for it and was not taken yet
const waiting = new Map(); // address: who waits for what comes
let directory, catcher;

export let base; // the address of the node, as http://127.0.0.1:1234
export let demo; // that of a demo, which says on every page that its rates are made up

// However this program ends, it stops the programs that it started.
process.on("exit", () => {
  for (const { child } of running) child.kill("SIGKILL");
  if (directory) rmSync(directory, { recursive: true, force: true });
});
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => process.exit(130));

export async function start() {
  directory = await mkdtemp(path.join(tmpdir(), "tasard-pages-"));
  const observations = await makeObservations();
  const port = await catchLetters();
  const [service, shown] = await Promise.all([
    begin(["serve", "--data", data(), "--import", observations, "--no-collect", "--listen", "127.0.0.1:0",
      "--smtp-addr", `127.0.0.1:${port}`, "--smtp-tls", "off", "--mail-from", "no-reply@tasard.example",
      "--trusted-proxy", "127.0.0.1/32", "--log-format", "text"], / imported /),
    begin(["demo", "--listen", "127.0.0.1:0", "--step", "1h", "--data", made()], /^Ctrl-C/),
  ]);
  base = service.address;
  demo = shown.address;
}

export async function stop() {
  await Promise.all([...running].map(end));
  if (catcher) await new Promise((done) => catcher.close(done));
}

const data = () => path.join(directory, "data");
const made = () => path.join(directory, "made"); // a demo's

// admin runs a command of tasard admin.
export const admin = (...args) => run(program, ["admin", ...args, "--data", data(), "--by", "pages-test"]);

// makeObservations exports a year of rates of a demo. Their sources are called demo-..., which only a demo knows.
async function makeObservations() {
  const market = await begin(["demo", "--listen", "127.0.0.1:0", "--step", "1h", "--data", made()], /^Ctrl-C/);
  await end(market);
  const { stdout } = await run(program, ["export", "--data", made()], { maxBuffer: 1 << 26 });
  const file = path.join(directory, "observations.csv");
  await writeFile(file, stdout.replaceAll(",demo-", ","));
  return file;
}

// begin starts the program and waits for the line that says it is ready.
async function begin(args, ready) {
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"] });
  const service = { child, address: undefined, ended: once(child, "exit") };
  running.add(service);
  const said = [];
  const trouble = (what) => new Error(`tasard ${args[0]} ${what}:\n${said.join("\n")}`);
  await new Promise((done, fail) => {
    const timer = setTimeout(() => fail(trouble("is not ready")), patience);
    child.on("error", fail);
    child.on("exit", (code, signal) => {
      const ended = trouble(`ended with ${signal ?? code}`);
      if (!service.ending) console.error(ended.message);
      fail(ended);
    });
    const hear = (line) => {
      said.push(line);
      service.address ??= line.match(/http:\/\/127\.0\.0\.1:\d+/)?.[0];
      if (!ready.test(line)) return;
      clearTimeout(timer);
      done();
    };
    for (const stream of [child.stdout, child.stderr]) createInterface({ input: stream }).on("line", hear);
  });
  return service;
}

// end stops a program with SIGINT.
async function end(service) {
  service.ending = true;
  service.child.kill("SIGINT");
  await service.ended;
  running.delete(service);
}

async function catchLetters() {
  catcher = new SMTPServer({
    authOptional: true, disabledCommands: ["STARTTLS", "AUTH"], logger: false,
    onData(stream, session, done) {
      const parts = [];
      stream.on("data", (part) => parts.push(part));
      stream.on("end", () => {
        for (const to of session.envelope.rcptTo) arrive(to.address, Buffer.concat(parts));
        done();
      });
    },
  });
  catcher.listen(0, "127.0.0.1");
  await once(catcher.server, "listening");
  return catcher.server.address().port;
}

function arrive(to, letter) {
  const taker = waiting.get(to);
  waiting.delete(to);
  if (taker) taker(letter);
  else letters.set(to, letter);
}

// codeFor waits for the e-mail to an address and returns the code in it.
export async function codeFor(to) {
  const letter = letters.get(to) ?? await new Promise((done, fail) => {
    const timer = setTimeout(() => fail(new Error(`no letter to ${to} has arrived`)), patience);
    waiting.set(to, (letter) => { clearTimeout(timer); done(letter); });
  });
  letters.delete(to);
  const { text, subject } = await PostalMime.parse(letter);
  const code = text.match(/\b\d{8}\b/)?.[0];
  if (!code || subject.includes(code)) throw new Error(`the code is ${code} in the letter "${subject}":\n${text}`);
  return code;
}
