// Rules for all pages: in both languages, light and dark, on a phone and on a desktop.
import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { after, describe, test } from "node:test";
import { concurrency, forgive, sizes, visit } from "./browser.mjs";
import { axe, breaches } from "./axe.mjs";
import { admin, demo } from "./node.mjs";
import { makeKey, signIn } from "./signup.mjs";

const pictures = "pictures"; // in .tools/browser
let shots = 0;

// pages lists every page, and every state of a page that looks different. go is called with the visitor.
const open = (path) => (v) => v.page.goto(v.at(path));
const inside = async (v) => {
  if (!v.inside) await signIn(v, `every-${v.address}@example.com`);
  v.inside = true;
};
const pages = [
  ["home", open("/")],
  ["converted", open("/?amount=1,250.50&currency=EUR&operation=sell")],
  ["converted-most", open("/?amount=999,999,999,999.99")],
  ["bad-amount", open("/?amount=1.250,50")],
  ["no-rates", open("/?currency=XDR")],
  ["institutions", open("/institutions")],
  ["institution", async (v) => {
    await open("/institutions/popular?days=90")(v);
    await v.page.getByText(v.t("history.table")).click();
  }],
  ["not-found", open("/institutions/none")],
  ["terms", open("/terms")],
  ["docs", open("/docs")],
  ["reference", async (v) => {
    await open("/docs/reference")(v);
    await v.page.locator(".opblock").first().waitFor();
  }],
  ["reference-asked", async (v) => {
    await open("/docs/reference")(v);
    const operation = v.page.locator(".opblock", { has: v.page.locator('[data-path="/v1/currencies"]') });
    await operation.locator(".opblock-summary-control").click({ noWaitAfter: true });
    await operation.getByRole("button", { name: "Execute" }).click();
    await operation.locator(".live-responses-table").waitFor();
  }],
  ["welcome", open("/account")],
  ["bad-email", async (v) => {
    await open("/account")(v);
    await v.page.getByLabel(v.t("welcome.email")).fill("ana@example");
    await v.page.getByRole("button", { name: v.t("welcome.send") }).click();
    await v.page.locator("#email-fault").waitFor();
  }],
  ["code", async (v) => {
    await open("/account")(v);
    await v.page.getByLabel(v.t("welcome.email")).fill(`code-${v.address}@example.com`);
    await v.page.getByRole("button", { name: v.t("welcome.send") }).click();
    await v.page.getByLabel(v.t("code.code")).fill("1");
    await v.page.getByRole("button", { name: v.t("code.enter") }).click();
    await v.page.locator("#code-fault").waitFor();
  }],
  ["no-keys", inside],
  ["made", async (v) => { await inside(v); await makeKey(v, "Servidor de la oficina"); }],
  ["keys", async (v) => {
    await inside(v);
    await open("/account")(v);
    await makeKey(v, "");
    await open("/account")(v);
    await v.page.locator("details.revoke summary").first().click();
  }],
];

const whole = process.env.SWEEP === "whole";
const looks = Object.entries(sizes).flatMap(([size, box]) => [false, true].map((dark) => ({ size, box, dark })));

// turn halves the work where both languages give the same result: it checks even items in one language and odd items
// in the other.
const turn = (i, language) => whole || (i + (language === "en" ? 1 : 0)) % 2 === 0;

// lookAt checks a page on both screen sizes: one light and one dark, exchanged in the other language. With
// SWEEP=whole it checks all four combinations. It wants no violation of accessibility rules, and nothing wider than
// the screen.
async function lookAt(v, name, language) {
  const found = [];
  for (const { size, box, dark } of looks.filter(({ size, dark }) => turn((size === "phone") + dark + name.length, language))) {
    await v.page.setViewportSize(box);
    await v.page.emulateMedia({ colorScheme: dark ? "dark" : "light" });
    const look = `${name}, ${language}, ${size}, ${dark ? "dark" : "light"}`;
    await v.page.screenshot({ path: `${pictures}/${name}-${language}-${size}-${dark ? "dark" : "light"}.png`, fullPage: true });
    shots++;
    for (const breach of [...await breaches(v.page), ...await tooWide(v.page)]) found.push(`${look}: ${breach}`);
  }
  assert.deepEqual(found, []);
}

// tooWide names the elements that make a page scroll sideways.
const tooWide = (page) => page.evaluate(() => {
  const room = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= room && document.body.scrollWidth <= room) return [];
  const wide = [...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > room + 0.5);
  return [`${document.documentElement.scrollWidth} px in ${room}`, ...wide.map((e) => e.outerHTML.slice(0, 120))].slice(0, 5);
});

for (const language of ["es", "en"]) {
  describe(`every page, ${language}`, { concurrency }, () => {
    test("accessible (WCAG 2.2 A and AA), no wider than the screen, light and dark", async (t) => {
      await mkdir(pictures, { recursive: true });
      await visit({ language }, async (v) => {
        for (const [name, go] of pages) {
          await t.test(name, async () => {
            await go(v);
            await lookAt(v, name, language);
          });
        }
      });
    });

    // Fields inside Swagger UI are not ours. The tab order is the same in both languages, so only one is checked.
    test("the keyboard reaches everything, and shows where it is", async (t) => {
      await visit({ language }, async (v) => {
        for (const [name, go] of pages.filter(([name], i) => !name.startsWith("reference") && turn(i, language))) {
          await t.test(name, async () => {
            await go(v);
            await tabThrough(v);
          });
        }
      });
    });

    test("the first key leads past the menu", () => visit({ language }, async (v) => {
      await v.page.goto(v.at("/"));
      await v.page.keyboard.press("Tab");
      const skip = v.page.getByRole("link", { name: v.t("frame.skip") });
      await skip.and(v.page.locator(":focus-visible")).waitFor();
      assert.ok((await skip.boundingBox()).x >= 0, "it is in sight");
      await v.page.keyboard.press("Enter");
      await v.page.keyboard.press("Tab");
      assert.ok(await v.page.evaluate(() => document.getElementById("content").contains(document.activeElement)));
    }));

    test("a demo says that its rates are made up", () => visit({ language, service: demo }, async (v) => {
      await v.page.goto(v.at("/"));
      await v.page.getByText(v.t("frame.demo")).waitFor();
      await lookAt(v, "demo", language);
    }));
  });
}

// tabThrough presses Tab until the focus leaves the page, and compares the focused elements with the fields of the
// page.
async function tabThrough(v) {
  const all = await v.page.evaluate(() => {
    document.activeElement.blur();
    getSelection().removeAllRanges();
    const able = 'a[href], button, input:not([type="hidden"]), select, textarea, summary, [tabindex="0"]';
    const radios = new Set();
    const stops = [...document.querySelectorAll(able)].filter((e) => {
      if (!e.checkVisibility({ visibilityProperty: true })) return false;
      return e.type !== "radio" || e.checked || (!document.querySelector(`[name="${e.name}"]:checked`) && !radios.has(e.name) && radios.add(e.name));
    });
    stops.forEach((e, i) => { e.dataset.stop = i; });
    return stops.length;
  });
  const reached = new Set();
  for (let i = 0; i < all + 3; i++) {
    await v.page.keyboard.press("Tab");
    const { stop, seen, text } = await v.page.evaluate(() => {
      const e = document.activeElement, style = getComputedStyle(e);
      return { stop: e.dataset.stop, text: e.outerHTML.slice(0, 120), seen: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2 };
    });
    if (stop === undefined) continue; // between the end of the page and its beginning
    assert.ok(seen, `nobody sees that the keyboard is at ${text}`);
    reached.add(stop);
  }
  const missed = await v.page.evaluate((reached) => [...document.querySelectorAll("[data-stop]")]
    .filter((e) => !reached.includes(e.dataset.stop)).map((e) => e.outerHTML.slice(0, 120)), [...reached]);
  assert.deepEqual(missed, []);
  assert.ok(all >= 8);
}

test("every page: once keys are announced, the account and the guide say so", async () => {
  const day = new Date(Date.now() + 20 * 24 * 3600e3).toISOString().replace(/\.\d+/, "");
  await admin("keys-required", "--at", day);
  try {
    for (const language of ["es", "en"]) {
      await visit({ language }, async (v) => {
        await v.page.goto(v.at("/account"));
        await v.page.getByText(v.t("transition.required")).waitFor();
        await lookAt(v, "announced", language);
      });
    }
  } finally {
    await admin("keys-required", "--withdraw");
  }
});

describe("controls: what is planted is found", { concurrency }, () => {
  // plant adds an element to the home page.
  const plant = async (v, more) => {
    await v.page.route("**/terms", async (route) => {
      const answer = await route.fetch();
      await route.fulfill({ response: answer, body: (await answer.text()).replace("</main>", `${more}</main>`) });
    });
    await v.page.goto("/terms");
  };

  test("a script, a style and a handler in the page break the policy", () => visit({}, async (v) => {
    await plant(v, '<script>window.ran = true</script><p style="color: red">a</p><p onclick="0">b</p>');
    assert.equal(await v.page.evaluate(() => window.ran), undefined);
    for (const what of ["script-src-elem", "style-src-attr", "script-src-attr"]) forgive(v, new RegExp(`^policy: ${what} inline`));
    forgive(v, /^console: .*Content Security Policy/);
  }));

  test("without JavaScript the policy is watched as well", () => visit({ script: false }, async (v) => {
    const told = v.page.waitForEvent("console");
    await plant(v, '<p style="color: red">a</p>');
    await told;
    forgive(v, /^console: .*Content Security Policy/);
  }));

  test("a picture from elsewhere is refused and told", () => visit({}, async (v) => {
    await plant(v, '<img alt="" src="http://127.0.0.2:9/picture.png">');
    forgive(v, /^policy: img-src http:\/\/127\.0\.0\.2:9/);
    forgive(v, /^console: .*Content Security Policy/);
    if (v.faults.length > 0) forgive(v, /^(elsewhere|no answer): http:\/\/127\.0\.0\.2:9/);
  }));

  test("a script that fails, a file that is missing", () => visit({}, async (v) => {
    await v.page.goto("/terms");
    await v.page.evaluate(() => { setTimeout(() => { throw new Error("planted"); }); return fetch("/assets/none.js"); });
    forgive(v, /^script: .*planted/);
    forgive(v, /^refused: .*none\.js: 404/);
  }));

  test("a field without a label, grey on grey", () => visit({}, async (v) => {
    await v.page.goto("/terms");
    await v.page.evaluate(() => document.querySelector("main").insertAdjacentHTML("beforeend", '<input type="text"><p id="grey">grey</p>'));
    await v.page.locator("#grey").evaluate((e) => { e.style.color = "#999"; });
    assert.deepEqual((await breaches(v.page)).map((breach) => breach.split(":")[0]).sort(), ["color-contrast", "label"]);
  }));

  test("something wide, something out of the keyboard's reach, a focus that nobody sees", () => visit({ size: sizes.phone }, async (v) => {
    await v.page.goto("/terms");
    await tabThrough(v);
    await v.page.evaluate(() => document.querySelector("main").insertAdjacentHTML("beforeend", '<a href="/" id="planted" tabindex="-1">x</a>'));
    await assert.rejects(tabThrough(v), /planted/);
    await v.page.locator("#planted").evaluate((e) => { e.tabIndex = 0; e.style.outline = "none"; });
    await assert.rejects(tabThrough(v), /nobody sees/);
    assert.deepEqual(await tooWide(v.page), []);
    await v.page.locator("#planted").evaluate((e) => { e.style.cssText = "display: block; width: 400px"; });
    assert.match((await tooWide(v.page)).join(), /planted/);
  }));
});

after(() => console.log(`axe ${axe.version}: ${shots} looks; their pictures are in .tools/browser/${pictures}`));
