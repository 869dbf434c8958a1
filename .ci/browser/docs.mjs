// The guide, and the reference that asks the node.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { describe, test } from "node:test";
import { promisify } from "node:util";
import { concurrency, visit } from "./browser.mjs";
import { makeKey, signIn } from "./signup.mjs";

const run = promisify(execFile);

for (const language of ["es", "en"]) {
  describe(`documentation, ${language}`, { concurrency }, () => {
    test("each quick start opens and is copied whole; the line of curl works", () => visit({ language }, async (v) => {
      await v.page.goto(v.at("/docs"));
      for (const name of ["curl", "go", "javascript", "python", "php"]) {
        const start = v.page.locator(`#quick-${name}`);
        if (name !== "curl") await start.locator("summary").click();
        await start.getByRole("button", { name: v.t("copy") }).click();
        await start.getByRole("button", { name: v.t("copied") }).waitFor();
        const copied = await v.page.evaluate(() => navigator.clipboard.readText());
        assert.equal(copied, await v.page.locator(`#snippet-${name}`).textContent());
        assert.ok(copied.includes(v.service), `${name} asks ${v.service}`);
      }
      const line = await v.page.locator("#snippet-curl").textContent();
      const { stdout } = await run("sh", ["-c", line], { env: { PATH: process.env.PATH } });
      assert.match(stdout, /"operation":"buy"/);
    }));

    test("the guide is whole without JavaScript, the reference says what it needs", () => visit({ language, script: false }, async (v) => {
      await v.page.goto(v.at("/docs"));
      await v.page.locator("#snippet-curl").waitFor();
      assert.equal(await v.page.getByRole("button").count(), 0, "a button that can do nothing");
      await v.page.goto(v.at("/docs/reference"));
      const said = v.page.locator("noscript p"); // Playwright finds no text inside noscript
      await said.waitFor();
      assert.equal(await said.textContent(), v.t("reference.script"));
    }));

    test("the reference loads the contract, asks the node and shows the answer", () => visit({ language }, async (v) => {
      await signIn(v, `docs-${language}@example.com`);
      const secret = await makeKey(v, "docs");
      await v.page.goto(v.at("/docs/reference"));
      const operation = v.page.locator(".opblock", { has: v.page.locator('[data-path="/v1/currencies"]') });
      await operation.locator(".opblock-summary-control").click({ noWaitAfter: true });
      await operation.getByRole("button", { name: "Execute" }).click();
      const answer = operation.locator(".live-responses-table");
      await answer.locator(".response-col_status", { hasText: /^200/ }).first().waitFor();
      await answer.getByText('"USD"').first().waitFor();
      assert.ok(v.requested.includes(`${v.service}/openapi.json`));
      assert.ok(v.requested.includes(`${v.service}/v1/currencies`));

      await v.page.getByRole("button", { name: "Authorize" }).first().click();
      const dialog = v.page.locator(".dialog-ux");
      await dialog.locator("input").first().fill(secret);
      await dialog.getByRole("button", { name: "Apply credentials" }).first().click();
      await dialog.getByRole("button", { name: "Close" }).first().click();
      const sent = v.page.waitForRequest((request) => request.url().endsWith("/v1/currencies"));
      await operation.getByRole("button", { name: "Execute" }).click();
      assert.equal((await (await sent).allHeaders()).authorization, `Bearer ${secret}`);
      await v.page.reload();
      await v.page.locator(".opblock").first().waitFor();
      const kept = await v.page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.documentElement.outerHTML]));
      assert.ok(!kept.includes(secret), "a reload forgets the key");
    }));
  });
}
