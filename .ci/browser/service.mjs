// The pages over HTTP: caching and quotas.
import assert from "node:assert/strict";
import { test } from "node:test";
import { visit } from "./browser.mjs";
import { base } from "./node.mjs";

const publicPages = ["/", "/?currency=EUR&operation=sell&amount=250.00", "/institutions", "/institutions/popular", "/terms", "/docs", "/docs/reference"];
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
  "manifest-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";
const get = (path, headers = {}) => fetch(base + path, { headers: { "X-Forwarded-For": "10.9.0.1", ...headers }, redirect: "manual" });

test("service: every page has the headers that protect, its language and the contract", async () => {
  for (const path of [...publicPages, "/account", "/account/code", "/institutions/none", "/en", "/en/account"]) {
    const { status, headers } = await get(path);
    const wanted = path === "/docs/reference" ? policy.replace("img-src 'self'", "img-src 'self' data:") : policy;
    assert.equal(headers.get("Content-Security-Policy"), wanted, path);
    assert.equal(headers.get("X-Content-Type-Options"), "nosniff", path);
    assert.equal(headers.get("Referrer-Policy"), "strict-origin-when-cross-origin", path);
    assert.equal(headers.get("Cross-Origin-Opener-Policy"), "same-origin", path);
    assert.ok(headers.get("X-Request-Id"), path);
    assert.match(headers.get("Link"), /rel="service-desc"/, path);
    if (status !== 303) assert.equal(headers.get("Content-Language"), path.startsWith("/en") ? "en" : "es", path);
    if (/account|none/.test(path)) assert.equal(headers.get("Cache-Control"), "no-store", path);
  }
});

test("service: a page that did not change is 304, and assets are kept", async () => {
  for (const path of ["/terms", "/institutions", "/docs", "/docs/reference"]) {
    const first = await get(path);
    assert.equal(first.headers.get("Cache-Control"), "no-cache");
    const again = await get(path, { "If-None-Match": first.headers.get("ETag") });
    assert.deepEqual([again.status, await again.text()], [304, ""], path);
    assert.equal((await get(path, { "If-None-Match": 'W/"other"' })).status, 200, "control: another tag");
  }
  const assets = (await (await get("/docs/reference")).text()).match(/\/assets\/[^"]+/g);
  assert.ok(assets.length >= 5);
  for (const asset of assets) {
    const answer = await get(asset);
    assert.equal(answer.status, 200, asset);
    assert.match(answer.headers.get("Cache-Control"), /max-age=31536000.*immutable/, asset);
  }
});

test("service: the second view of a page brings the page's news alone over the network", () => visit({}, async (v) => {
  const view = async () => {
    await v.page.goto("/terms", { waitUntil: "load" });
    return v.page.evaluate(() => [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
      .filter((entry) => !entry.name.endsWith(".svg")) // browsers request the icon at any time
      .map((entry) => ({ name: entry.name, bytes: entry.transferSize, body: entry.encodedBodySize })));
  };
  const first = await view();
  assert.ok(first.length >= 2 && first.every((entry) => entry.bytes > entry.body && entry.body > 500), JSON.stringify(first));
  await v.page.goto("/institutions");
  const [page, ...resources] = await view();
  assert.ok(page.bytes > 0 && page.bytes < page.body, `asked for again, told that nothing changed: ${JSON.stringify(page)}`);
  for (const resource of resources) assert.equal(resource.bytes, 0, `${resource.name} came again`);
}));

test("service: pages cost nothing of the API's quota", () => visit({}, async (v) => {
  const left = async () => Number((await get("/v1/currencies", { "X-Forwarded-For": v.address })).headers.get("X-RateLimit-Remaining"));
  const before = await left();
  for (const path of [...publicPages, "/account"]) await v.page.goto(path);
  assert.equal(await left(), before - 1, "the question itself costs one");
}));
