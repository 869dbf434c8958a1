// From an e-mail address to a key and its revocation, as people do it.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { describe, test } from "node:test";
import { promisify } from "node:util";
import { concurrency, forgive, visit } from "./browser.mjs";
import { base, codeFor } from "./node.mjs";

const run = promisify(execFile);
const press = (v, key) => v.page.getByRole("button", { name: v.t(key) }).click();
const sees = (v, text) => v.page.getByText(text).first().waitFor();

// askCode goes from the home page to the page with the field for the code.
export async function askCode(v, email) {
  await v.page.goto(v.at("/account"));
  await v.page.getByLabel(v.t("welcome.email")).fill(email);
  await press(v, "welcome.send");
  await v.page.waitForURL(v.service + v.at("/account/code"));
  return codeFor(email);
}

export async function enter(v, code) {
  await v.page.getByLabel(v.t("code.code")).fill(code);
  await press(v, "code.enter");
}

export async function signIn(v, email) {
  await enter(v, await askCode(v, email));
  await v.page.waitForURL(v.service + v.at("/account"));
}

// makeKey makes a key and returns it.
export async function makeKey(v, name) {
  await v.page.getByLabel(v.t("home.name")).fill(name);
  await press(v, "home.make");
  const secret = await v.page.locator("#secret").textContent();
  assert.match(secret, /^tasard_live_[0-9A-Za-z]{36}$/);
  return secret;
}

// ask sends a request with a key from an address, as the server of a customer would.
const ask = (path, key, from) =>
  fetch(base + path, { headers: { ...(key && { Authorization: `Bearer ${key}` }), "X-Forwarded-For": from } });

// remaining returns how many requests of this minute are left according to a response.
const remaining = (answer) => Number(answer.headers.get("X-RateLimit-Remaining"));

for (const language of ["es", "en"]) {
  for (const script of [true, false]) {
    describe(`sign-up, ${language}, JavaScript ${script ? "on" : "off"}`, { concurrency }, () => {
      const email = `ana-${language}-${script}@example.com`;
      const options = { language, script };

      test("from an address to a key that works, shown once, and back", () => visit(options, async (v) => {
        await signIn(v, email);
        await sees(v, v.t("home.none"));
        const secret = await makeKey(v, "server");
        await copies(v, secret);
        await curlWorks(v);
        await v.page.getByRole("link", { name: v.t("made.back") }).click();
        await sees(v, v.t("usage.of", "1", "1,000"));
        await isGone(v, secret);
        await revoke(v, secret);
        await signOut(v);
      }));

      test("two keys at most", () => visit(options, async (v) => {
        await signIn(v, `two-${email}`);
        await makeKey(v, "one");
        const other = await v.context.newPage();
        await other.goto(v.at("/account"));
        await v.page.goto(v.at("/account"));
        await makeKey(v, "two");
        await other.getByLabel(v.t("home.name")).fill("three");
        const refused = other.waitForResponse((r) => r.request().method() === "POST");
        await other.getByRole("button", { name: v.t("home.make") }).click();
        assert.equal((await refused).status(), 409);
        await other.getByText(v.t("fault.key_limit_reached")).waitFor();
        await other.getByText(v.t("home.full", 2)).waitFor();
        assert.equal(await other.locator("li.key").count(), 2);
      }));

      test("a wrong code is refused, and after five the right one too", () => visit(options, async (v) => {
        const code = await askCode(v, `wrong-${email}`);
        await enter(v, "12");
        await sees(v, v.t("fault.digits"));
        for (let i = 0; i < 5; i++) {
          await enter(v, code.replace(/^./, (digit) => (Number(digit) + 1 + i) % 10));
          await sees(v, v.t("fault.invalid_code"));
        }
        const refused = v.page.waitForResponse((r) => r.request().method() === "POST");
        await enter(v, code);
        assert.equal((await refused).status(), 422);
        await sees(v, v.t("fault.invalid_code"));
      }));

      test("a wrong code does no harm; a session that is over ends where a code is asked for", () => visit(options, async (v) => {
        const code = await askCode(v, `over-${email}`);
        await enter(v, code.replace(/.$/, (digit) => (Number(digit) + 1) % 10));
        await sees(v, v.t("fault.invalid_code"));
        await enter(v, `${code.slice(0, 4)} ${code.slice(4)}`);
        await sees(v, v.t("home.none"));
        const [{ value: token }] = (await v.context.cookies(v.service + v.at("/account"))).filter((c) => c.name === "tasard_session");
        const closed = await fetch(`${base}/v1/account/sessions`, { method: "DELETE", headers: { Authorization: `Bearer ${token}` } });
        assert.equal(closed.status, 204);
        await press(v, "home.make");
        await sees(v, v.t("fault.invalid_session"));
        assert.equal(await v.page.locator("#secret").count(), 0);
        await v.page.getByLabel(v.t("welcome.email")).waitFor();
      }));

      test("a second code within a minute is refused, and says when", () => visit(options, async (v) => {
        const code = await askCode(v, `soon-${email}`);
        await press(v, "code.resend");
        await sees(v, v.t("fault.code_requested_too_soon"));
        await enter(v, code);
        await sees(v, v.t("home.none"));
      }));

      test("the other language keeps the session", () => visit(options, async (v) => {
        await signIn(v, `both-${email}`);
        await v.page.getByRole("link", { name: v.t("frame.other") }).click();
        await v.page.waitForURL(v.service + (language === "es" ? "/en/account" : "/account"));
        assert.equal(await v.page.locator("html").getAttribute("lang"), language === "es" ? "en" : "es");
        await v.page.locator("#usage").waitFor();
      }));
    });
  }
}

test("sign-up: moments are told in the visitor's own time too, where that differs", async () => {
  for (const [zone, told] of [["Europe/Madrid", 1], ["America/Santo_Domingo", 0]]) {
    await visit({ zone }, async (v) => {
      await signIn(v, `zone-${told}@example.com`);
      assert.equal(await v.page.getByText(v.t("usage.local")).count(), told, zone);
    });
  }
});

// copies presses the copy button, which exists only with JavaScript.
async function copies(v, secret) {
  const button = v.page.getByRole("button", { name: v.t("made.copy"), exact: true });
  if (!v.script) {
    assert.equal(await button.count(), 0, "a button that can do nothing");
    return;
  }
  await button.click();
  await v.page.getByRole("button", { name: v.t("made.copied") }).waitFor();
  assert.equal(await v.page.evaluate(() => navigator.clipboard.readText()), secret);
}

// curlWorks runs the curl command of the page unchanged.
async function curlWorks(v) {
  const line = await v.page.locator("#curl").textContent();
  const { stdout } = await run("sh", ["-c", `${line} --silent --show-error --include`]);
  assert.match(stdout, /^HTTP\/1.1 200 OK/);
  assert.match(stdout, /^X-RateLimit-Limit: 60\r$/m);
  assert.match(stdout, /^X-RateLimit-Remaining: 59\r$/m);
  assert.match(stdout, /"operation":"buy"/);
}

// isGone goes back to the page that has shown the key. The browser has not kept the page, so it asks whether to send
// the form again.
async function isGone(v, secret) {
  await v.page.goBack().catch((error) => assert.match(error.message, /ERR_CACHE_MISS/));
  await v.page.waitForURL("chrome-error://**");
  assert.ok(!(await v.page.content()).includes(secret), "the button that goes back shows the key");
  forgive(v, /ERR_CACHE_MISS/);
  await v.page.goto(v.at("/account"));
  await v.page.reload();
  assert.ok(!(await v.page.content()).includes(secret), "a reload shows the key");
}

// revoke revokes the key. Requests with the key are then anonymous.
async function revoke(v, secret) {
  const before = await ask("/v1/account/usage", secret, v.address);
  assert.equal(before.status, 200);
  await v.page.getByText(v.t("home.revoke"), { exact: false }).first().click();
  await press(v, "home.revoke.do");
  await sees(v, v.t("note.revoked"));
  const after = await ask("/v1/account/usage", secret, v.address);
  assert.equal(after.status, 401);
  assert.equal((await after.json()).error.code, "revoked_key");
  const counted = [await ask("/v1/currencies", undefined, v.address), await ask("/v1/currencies", secret, v.address)];
  assert.deepEqual(counted.map((answer) => [answer.status, remaining(answer)]), [[200, 59], [200, 58]], "with the key as without one");
}

async function signOut(v) {
  await press(v, "home.out");
  await sees(v, v.t("note.out"));
  await v.page.goBack();
  await v.page.goto(v.at("/account"));
  await v.page.getByLabel(v.t("welcome.email")).waitFor();
  assert.equal(await v.page.locator("li.key").count(), 0);
}
