// The card in a frame of another site, the preview of a link, the manifest. A demo knows its public URL.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, test } from "node:test";
import { forgive, visit } from "./browser.mjs";
import { demo } from "./node.mjs";

// Another site, which has two pages of the demo in frames. A request that the browser's driver answers would have no
// address, and the browser would not let it have frames of this machine.
const other = createServer((request, response) => {
  const frame = (page) => `<iframe src="${demo}${request.url.replace(/^\/es/, "")}${page}" width="380" height="260"></iframe>`;
  response.setHeader("Content-Type", "text/html").end(frame("/embed/usd") + frame("/terms"));
}).listen(0, "127.0.0.1");
after(() => other.close());

for (const language of ["es", "en"]) {
  test(`share: another site shows the card in a frame, and no other page, ${language}`, () => visit({ language, service: demo }, async (v) => {
    await v.page.goto(`http://127.0.0.1:${other.address().port}/${language}`);
    const card = v.page.frameLocator("iframe").first();
    await card.getByText(v.t("glance.compra.who")).waitFor();
    await card.getByText(v.t("share.demo")).waitFor();
    assert.equal(await card.locator("script").count(), 0);
    const [height, style] = await card.locator("body").evaluate((body) => [document.documentElement.scrollHeight, getComputedStyle(body).display]);
    assert.ok(height <= 260, `the card is ${height} px high`);
    assert.equal(style, "flex", "it has its style");
    const [page] = await Promise.all([v.context.waitForEvent("page"), card.getByRole("heading").getByRole("link").click()]);
    await page.waitForURL(demo + v.at("/"));
    assert.equal(await v.page.frameLocator("iframe").last().getByRole("heading").count(), 0);
    forgive(v, /^console: .*frame-ancestors 'none'/);
    forgive(v, /^elsewhere: .*\/(es|en)$/);
    if (v.faults.length > 0) forgive(v, /^(no answer|elsewhere): .*(\/terms|favicon\.ico)/);
  }));
}

test("share: the picture of a preview and the manifest can be read", () => visit({ service: demo }, async (v) => {
  await v.page.goto("/?currency=EUR");
  const address = await v.page.locator('meta[property="og:image"]').getAttribute("content");
  assert.equal(address, `${demo}/share/eur.png`);
  const size = await v.page.evaluate(async (address) => {
    const picture = new Image();
    picture.src = address;
    await picture.decode();
    return [picture.naturalWidth, picture.naturalHeight];
  }, address);
  assert.deepEqual(size, [1200, 630]);
  const manifest = await v.page.evaluate(async () => (await fetch(document.querySelector('link[rel="manifest"]').href)).json());
  const icon = await fetch(demo + manifest.icons[0].src);
  assert.deepEqual([icon.status, icon.headers.get("Content-Type"), manifest.start_url], [200, "image/svg+xml", "/"]);
}));
