// Buttons that copy what another element shows: <button type="button" hidden data-copy="ID" data-done="TEXT" data-failed="TEXT">. Without
// JavaScript they stay hidden. Nothing is kept: neither here nor in the browser's storage.
"use strict";

for (const button of document.querySelectorAll("button[data-copy]")) {
  const from = document.getElementById(button.dataset.copy);
  const label = button.innerHTML;
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
    setTimeout(() => { button.innerHTML = label; }, 4000);
  });
}
