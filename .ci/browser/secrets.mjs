// A key must not appear in an address, in the browser's storage, or in a page after the first view.
import assert from "node:assert/strict";
import { test } from "node:test";
import { visit } from "./browser.mjs";
import { askCode, enter, makeKey, signIn } from "./signup.mjs";

// traces returns everything in a visitor's browser that could hold a secret.
async function traces(v, secret) {
  const stored = await v.page.evaluate(async () => {
    const all = (storage) => Array.from({ length: storage.length }, (_, i) => `${storage.key(i)}=${storage.getItem(storage.key(i))}`).join();
    return {
      localStorage: all(localStorage), sessionStorage: all(sessionStorage), cookie: document.cookie, name: window.name,
      databases: JSON.stringify(await indexedDB.databases()), caches: JSON.stringify(await caches.keys()), history: JSON.stringify(history.state),
    };
  });
  const places = {
    ...stored, page: await v.page.content(), cookies: JSON.stringify(await v.context.cookies()), address: v.page.url(),
    requests: v.requested.join("\n"),
  };
  return Object.keys(places).filter((place) => places[place].includes(secret)).sort();
}

test("secrets: a key is in the page that makes it, and nowhere else before or after", () => visit({}, async (v) => {
  await signIn(v, "secret@example.com");
  const secret = await makeKey(v, "server");
  assert.deepEqual(await traces(v, secret), ["page"]);
  await v.page.getByRole("button", { name: v.t("made.copy"), exact: true }).click();
  await v.page.getByRole("link", { name: v.t("made.back") }).click();
  for (const path of ["/account", "/", "/docs", "/terms"]) {
    await v.page.goto(v.at(path));
    assert.deepEqual(await traces(v, secret), [], path);
  }
  const hint = secret.slice(-4);
  await v.page.goto(v.at("/account"));
  assert.ok((await v.page.content()).includes(hint), "the account tells keys apart by their last characters");
}));

test("secrets, control: a key that was put anywhere is found", () => visit({}, async (v) => {
  const secret = "planted0123456789";
  await v.page.goto(`/?currency=USD&amount=${secret}`); // the page shows it again beside the field
  await v.page.evaluate((text) => {
    localStorage.setItem("key", text);
    sessionStorage.setItem("key", text);
    document.cookie = `key=${text}`;
    window.name = text;
    history.replaceState({ text }, "");
    return Promise.all([caches.open(text), new Promise((done) => { indexedDB.open(text).onsuccess = done; })]);
  }, secret);
  assert.deepEqual(await traces(v, secret),
    ["address", "caches", "cookie", "cookies", "databases", "history", "localStorage", "name", "page", "requests", "sessionStorage"]);
}));

test("secrets: the session and the code are out of reach of scripts, and in no address", () => visit({}, async (v) => {
  const code = await askCode(v, "code@example.com");
  await enter(v, code);
  await v.page.locator("#usage").waitFor();
  const cookies = (await v.context.cookies()).filter((cookie) => cookie.name === "tasard_session");
  assert.ok(cookies.length > 0);
  for (const cookie of cookies) {
    assert.deepEqual([cookie.httpOnly, cookie.sameSite], [true, "Strict"]);
    assert.match(cookie.path, /^(\/en)?\/account$/);
    assert.deepEqual(await traces(v, cookie.value), ["cookies"]);
  }
  assert.deepEqual(await traces(v, code), []);
}));
