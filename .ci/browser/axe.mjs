// Accessibility: axe-core's rules of WCAG 2.2, levels A and AA.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const source = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
export const axe = { version: require("axe-core/package.json").version };
const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"];

// breaches returns the rules that a page breaks, and where.
export async function breaches(page) {
  if (!(await page.evaluate(() => "axe" in globalThis))) await page.evaluate(source);
  return page.evaluate((tags) => globalThis.axe.run({ runOnly: { type: "tag", values: tags }, resultTypes: ["violations"] })
    .then(({ violations }) => violations.flatMap(({ id, nodes }) => nodes.map(({ target, html, failureSummary }) =>
      `${id}: ${target}: ${html.slice(0, 160)}: ${failureSummary.replaceAll("\n", " ")}`))), tags);
}
