// Rates: compares the texts of the pages with the API.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { concurrency, visit } from "./browser.mjs";
import { base } from "./node.mjs";

const ask = async (v, path) => {
  const answer = await fetch(base + path, { headers: { "X-Forwarded-For": v.address } });
  assert.equal(answer.status, 200, path);
  return answer.json();
};
const grouped = (amount) => amount.replace(/\B(?=(\d{3})+\.)/g, ",");
const padded = (rate) => rate ? grouped(rate.replace(/^(\d+)$/, "$1.").replace(/\.(\d?)$/, (_, d) => `.${d.padEnd(2, "0")}`)) : "—";
const sees = (v, text) => v.page.getByText(text).first().waitFor();
const choose = (v, key) => v.page.getByRole("radio", { name: v.t(key), exact: true }).check();
const press = (v) => v.page.getByRole("button", { name: v.t("form.submit") }).click();
const names = (v) => v.page.locator("#list table.rates:not(.stale) .name .who").allTextContents();
const totals = (v) => v.page.locator("#list table.rates:not(.stale) .total").allTextContents();

for (const language of ["es", "en"]) {
  for (const script of [true, false]) {
    describe(`rates, ${language}, JavaScript ${script ? "on" : "off"}`, { concurrency }, () => {
      const options = { language, script };

      test("the converter says what the API says", () => visit(options, async (v) => {
        await v.page.goto(v.at("/"));
        for (const [operation, currency, typed, amount] of [["buy", "EUR", "1,250.50", "1250.50"], ["sell", "USD", "0.01", "0.01"]]) {
          await choose(v, `form.${operation}`);
          await v.page.getByLabel(v.t("form.amount")).fill(typed);
          await v.page.getByRole("combobox", { name: v.t("form.currency") }).selectOption(currency);
          await press(v);
          await sees(v, v.t(`result.${operation}`, typed, currency));
          const { data } = await ask(v, `/v1/convert?currency=${currency}&operation=${operation}&amount=${amount}&limit=100`);
          const shown = await v.page.locator("#result strong").textContent();
          assert.equal(shown.replace(/\s/g, " "), `RD$ ${grouped(data[0].amountDop)}`);
          const each = (await totals(v)).map((text) => text.replace(/\s/g, " "));
          assert.deepEqual(each, data.slice(0, each.length).map((item) => `RD$ ${grouped(item.amountDop)}`));
          assert.ok(each.length > 5);
        }
      }));

      test("an amount that is none is told beside its field", () => visit(options, async (v) => {
        await v.page.goto(v.at("/?currency=USD&operation=buy&amount=1.250,50"));
        await sees(v, v.t("problem.amount"));
        const field = v.page.getByLabel(v.t("form.amount"));
        assert.equal(await field.getAttribute("aria-invalid"), "true");
        assert.equal(await field.inputValue(), "1.250,50");
        assert.equal(await v.page.locator("#result").count(), 0);
      }));

      test("the heads of the columns put them in order", () => visit(options, async (v) => {
        await v.page.goto(v.at("/?currency=EUR"));
        for (const [head, operation, sorted] of [["rates.compra", "sell", "descending"], ["rates.venta", "buy", "ascending"]]) {
          await v.page.locator("#list > table").getByRole("columnheader", { name: v.t(head) }).getByRole("link").click();
          await v.page.locator(`#list > table th[aria-sort="${sorted}"]`, { hasText: v.t(head) }).waitFor();
          const { data } = await ask(v, `/v1/rates/best?currency=EUR&operation=${operation}&limit=100`);
          const shown = await names(v);
          assert.deepEqual(shown, data.slice(0, shown.length).map((rate) => rate.institutionName));
          assert.ok(shown.length > 5);
        }
      }));

      test("a channel leaves the others out", () => visit(options, async (v) => {
        await v.page.goto(v.at("/"));
        const all = await names(v);
        await v.page.getByLabel(v.t("form.channel")).selectOption("digital");
        await press(v);
        await v.page.waitForURL(/channel=digital/);
        const { data } = await ask(v, "/v1/rates/best?currency=USD&operation=buy&channel=digital");
        assert.deepEqual(await names(v), data.map((rate) => rate.institutionName));
        assert.ok(data.length > 0 && data.length < all.length);
      }));

      test("a chart says the values of the day under the mouse, or of the last tap", () => visit(options, async (v) => {
        await v.page.goto(v.at("/institutions/popular"));
        const chart = v.page.locator(".chart svg");
        assert.equal(await chart.locator(".band text:visible").count(), 0);
        await chart.hover();
        const [said, ...others] = await chart.locator(".band text:visible").allTextContents();
        assert.deepEqual(others, []);
        assert.match(said, new RegExp(`· ${v.t("side.compra")} \\d+\\.\\d{2,} · ${v.t("side.venta")} \\d+\\.\\d{2,}$`));
        await chart.click(); // as a tap does, which leaves no mouse there
        await v.page.mouse.move(0, 0);
        assert.deepEqual(await chart.locator(".band text:visible").allTextContents(), [said]);
      }));

      test("an institution has its rates and their history", () => visit(options, async (v) => {
        await v.page.goto(v.at("/institutions"));
        await v.page.getByRole("link", { name: "Banco Popular Dominicano" }).click();
        await v.page.waitForURL(v.service + v.at("/institutions/popular"));
        const { data } = await ask(v, "/v1/rates?institution=popular");
        const cells = await v.page.locator("#rates td.number").allTextContents();
        assert.deepEqual(cells.map((text) => text.trim()), data.flatMap((rate) => [padded(rate.buy), padded(rate.sell)]));
        const days = [];
        for (const window of ["7", "90"]) {
          await v.page.getByRole("link", { name: v.t(`window.${window}`) }).click();
          await v.page.waitForURL(new RegExp(`days=${window}`));
          await v.page.getByText(v.t("history.table")).click();
          days.push(await v.page.locator("table.days tbody tr").count());
        }
        const week = await ask(v, "/v1/rates/history?institution=popular&currency=USD&limit=200");
        assert.equal(days[0], new Set(week.data.map((row) => row.date)).size);
        assert.ok(days[1] > 60, `90 days have ${days[1]} rows`);
      }));

      test("the other language has the same page, with what was asked", () => visit(options, async (v) => {
        for (const page of ["/", "/?amount=250.00&currency=EUR&operation=sell", "/institutions", "/institutions/popular", "/terms", "/docs", "/docs/reference"]) {
          await v.page.goto(v.at(page));
          await v.page.getByRole("link", { name: v.t("frame.other"), exact: true }).click();
          const there = new URL(v.page.url());
          const other = language === "es" ? `/en${page}`.replace(/^\/en\/(?=$|\?)/, "/en") : page;
          const wanted = new URL(v.service + other);
          assert.equal(there.pathname, wanted.pathname);
          for (const [name, value] of wanted.searchParams) assert.equal(there.searchParams.get(name), value, `${name} of ${page}`);
          assert.equal(await v.page.locator("html").getAttribute("lang"), language === "es" ? "en" : "es");
        }
      }));
    });
  }
}

test("rates: what is typed is converted at once, as the server does it, and without asking it", () => visit({}, async (v) => {
  const amounts = ["2.05", "1,250.50", "0.25", "999999999999.99", "333.33"];
  const server = [];
  for (const amount of amounts) {
    await v.page.goto(`/?currency=USD&operation=buy&amount=${amount}`);
    server.push(await totals(v));
  }
  await v.page.goto("/?currency=USD&operation=buy");
  const asked = () => v.requested.filter((url) => !url.includes("/assets/")).length; // browsers request the icon at any time
  const before = asked();
  const field = v.page.getByLabel(v.t("form.amount"));
  for (const [i, amount] of amounts.entries()) {
    await field.fill(amount);
    assert.deepEqual(await totals(v), server[i], amount);
  }
  for (const nothing of ["", "1.250,50", "1e3", "-5", "1.001"]) {
    await field.fill(nothing);
    assert.equal(await v.page.locator("#list > table .total:visible").count(), 0, nothing);
  }
  assert.equal(asked(), before);
}));
