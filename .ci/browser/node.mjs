// The programs under test: a node, and a mail server that keeps all e-mails. The node has the rates of a demo under
// the names of the real sources, in a temporary directory. Both listen only on this machine.
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

const patience = 120_000; // milliseconds, the longest wait for a start or an e-mail
const program = path.join(process.env.PROJECT, "tasard");
const run = promisify(execFile);
const running = new Set();
const emails = new Map(); // address: e-mails that codeFor has not returned yet
const waiting = new Map(); // address: calls of codeFor that wait for an e-mail
let directory, catcher;

export let base; // the address of the node, as http://127.0.0.1:1234
export let demo; // the address of a demo, whose pages say that all rates are made up

// At any end of this program, stop the programs that it has started.
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
      "--trusted-proxy", "127.0.0.1/32", "--log-format", "text"], /msg="imported /),
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
const made = () => path.join(directory, "made"); // data directory of a demo

// admin runs a command of tasard admin.
export const admin = (...args) => run(program, ["admin", ...args, "--data", data(), "--by", "pages-test"]);

// makeObservations exports a year of rates from a demo. It renames their sources, demo-..., to those of serve.
async function makeObservations() {
  const market = await begin(["demo", "--listen", "127.0.0.1:0", "--step", "1h", "--data", made()], /^Ctrl-C/);
  await end(market);
  const { stdout } = await run(program, ["export", "--data", made()], { maxBuffer: 1 << 26 });
  const file = path.join(directory, "observations.csv");
  await writeFile(file, stdout.replaceAll(",demo-", ","));
  return file;
}

// begin starts a program and waits for the line that says it is ready.
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

function arrive(to, email) {
  const taker = waiting.get(to);
  waiting.delete(to);
  if (taker) taker(email);
  else emails.set(to, email);
}

// codeFor waits for the e-mail to an address and returns the code in it.
export async function codeFor(to) {
  const email = emails.get(to) ?? await new Promise((done, fail) => {
    const timer = setTimeout(() => fail(new Error(`no e-mail to ${to} has arrived`)), patience);
    waiting.set(to, (email) => { clearTimeout(timer); done(email); });
  });
  emails.delete(to);
  const { text, subject } = await PostalMime.parse(email);
  const code = text.match(/\b\d{8}\b/)?.[0];
  if (!code || subject.includes(code)) throw new Error(`the code is ${code} in the e-mail "${subject}":\n${text}`);
  return code;
}
