// What makes the account's pages handier. Without it everything works too.
"use strict";

// Buttons that copy what another element shows. Nothing is kept: neither here nor in the browser's storage.
for (const button of document.querySelectorAll("button[data-copy]")) {
  const from = document.getElementById(button.dataset.copy);
  const label = button.textContent;
  button.hidden = false;
  button.setAttribute("aria-live", "polite");
  button.addEventListener("click", async () => {
    let done = true;
    try {
      await navigator.clipboard.writeText(from.textContent);
    } catch { // no clipboard without https, or not allowed: select it, so that one key copies it
      getSelection().selectAllChildren(from);
      done = false;
    }
    button.textContent = done ? button.dataset.done : button.dataset.failed;
    setTimeout(() => { button.textContent = label; }, 4000);
  });
}

// Moments in the visitor's own time, where that is not Santo Domingo's.
const here = Intl.DateTimeFormat().resolvedOptions().timeZone;
if (here && here !== "America/Santo_Domingo") {
  const format = new Intl.DateTimeFormat(document.documentElement.lang, { dateStyle: "long", timeStyle: "short" });
  for (const time of document.querySelectorAll("time[data-local]")) {
    time.after(` (${time.dataset.local}${format.format(new Date(time.dateTime))})`);
  }
}
