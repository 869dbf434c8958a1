// Moments in the visitor's own time, where that is not Santo Domingo's.
"use strict";

const here = Intl.DateTimeFormat().resolvedOptions().timeZone;
if (here && here !== "America/Santo_Domingo") {
  const format = new Intl.DateTimeFormat(document.documentElement.lang, { dateStyle: "long", timeStyle: "short" });
  for (const time of document.querySelectorAll("time[data-local]")) {
    time.after(` (${time.dataset.local}${format.format(new Date(time.dateTime))})`);
  }
}
