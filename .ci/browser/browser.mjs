// The browser and its visitors. Each visitor has its own profile and its own address (the node trusts the
// X-Forwarded-For of this machine). A visit fails on any error of the page.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import path from "node:path";
import { chromium } from "playwright-core";
import { base } from "./node.mjs";

export const sizes = { desktop: { width: 1280, height: 900 }, phone: { width: 360, height: 780 } };
const patience = 30_000; // milliseconds, the longest wait for anything on a page

// concurrency is the number of visitors of one suite at a time. All share the clipboard, so only one may use it.
export const concurrency = Math.max(2, availableParallelism());
let browser;
let visitors = 0;

export async function start() {
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] });
}
export const stop = () => browser?.close();

// visit opens pages for a visitor, passes them to look, and fails on any error of a page. Options:
//   language   "es" or "en": the language of the paths from at, and of the words from t
//   script     false turns JavaScript off
//   size       one of sizes; dark: prefers-color-scheme: dark
//   zone       the time zone
//   service    another node than base
export async function visit(options, look) {
  const { language = "es", script = true, size = sizes.desktop, dark = false, zone = "America/Santo_Domingo", service = base } = options;
  visitors++;
  const address = `10.0.${visitors >> 8}.${visitors & 255}`;
  const context = await browser.newContext({
    baseURL: service, locale: language === "es" ? "es-DO" : "en-US", timezoneId: zone, javaScriptEnabled: script,
    viewport: size, colorScheme: dark ? "dark" : "light", extraHTTPHeaders: { "X-Forwarded-For": address },
    permissions: ["clipboard-read", "clipboard-write"],
  });
  const visitor = { context, address, service, script, faults: [], requested: [], t: texts(language), at: paths(language) };
  context.setDefaultTimeout(patience);
  await watch(visitor);
  try {
    visitor.page = await context.newPage();
    await look(visitor);
    assert.deepEqual(visitor.faults, [], "what happened on the way");
  } finally {
    await context.close();
  }
}

// watch records errors of a page. Chromium reports violations of the policy in the console, also without JavaScript.
async function watch({ context, service, faults, requested }) {
  await context.exposeBinding("breachOfPolicy", (_, text) => faults.push(`policy: ${text}`));
  await context.addInitScript(() => {
    addEventListener("securitypolicyviolation", (e) => globalThis.breachOfPolicy(`${e.effectiveDirective} ${e.blockedURI}`));
  });
  context.on("console", (message) => {
    // Failed loads are recorded below. Error responses to the visitor are part of some tests.
    if (/^Failed to load resource: the server responded with a status of/.test(message.text())) return;
    if (["error", "warning"].includes(message.type())) faults.push(`console: ${message.text()}`);
  });
  context.on("weberror", (error) => faults.push(`script: ${error.error()}`));
  context.on("request", (request) => {
    requested.push(request.url());
    if (!request.url().startsWith(service + "/") && !request.url().startsWith("data:")) faults.push(`elsewhere: ${request.url()}`);
  });
  context.on("response", (response) => {
    if (response.status() >= 400 && !response.request().isNavigationRequest()) faults.push(`refused: ${response.url()}: ${response.status()}`);
  });
  context.on("requestfailed", (request) => {
    const why = request.failure()?.errorText;
    if (why !== "net::ERR_ABORTED") faults.push(`no answer: ${request.url()}: ${why}`); // aborted: the visitor has left the page
  });
}

// forgive removes errors that a test has caused on purpose from the list. It fails if there are none.
export function forgive({ faults }, pattern) {
  const others = faults.filter((fault) => !pattern.test(fault));
  assert.ok(others.length < faults.length, `${pattern} is missing in ${JSON.stringify(faults)}`);
  faults.splice(0, faults.length, ...others);
}

// paths returns the path of a page in a language. The page is named by its Spanish path.
const paths = (language) => (page) => (language === "es" ? page : `/en${page}`.replace(/^\/en\/(?=$|[?#])/, "/en"));

// texts returns the texts of the pages by key, as in the program. Values replace %d and %s.
function texts(language) {
  const read = (folder) => JSON.parse(readFileSync(path.join(process.env.PROJECT, "httpapi/pages", folder, `words.${language}.json`)));
  const words = { ...read("public"), ...read("docs/files"), ...read("account/files"), ...read("frame") };
  return (key, ...values) => {
    assert.ok(words[key], `there is no text ${key} in ${language}`);
    return words[key].replace(/%[ds]/g, () => values.shift());
  };
}
