// The converter, while somebody types: the totals of all rates, as the server makes them, without asking it. Amounts and rates are
// whole numbers of 1/100 and of 10^-8, so no binary fraction comes in. Without this file the form does the same.
"use strict";
(() => {
  const input = document.getElementById("amount");
  const totals = document.querySelectorAll("[data-total]");
  const result = document.getElementById("result");
  const pesos = input && "pesos" in input.dataset; // the amount is in pesos: divided, rounded down
  const shape = /^(\d{1,3}(,\d{3}){1,3}|\d{1,12})(\.\d{1,2})?$/;
  const scale = 100000000n;

  const cents = (text) => {
    if (/^\d{1,12},\d{1,2}$/.test(text)) text = text.replace(",", "."); // a decimal comma
    if (!shape.test(text)) return null;
    const [whole, fraction = ""] = text.replaceAll(",", "").split(".");
    return BigInt(whole + fraction.padEnd(2, "0"));
  };
  const money = (value) => {
    const digits = value.toString().padStart(3, "0");
    return digits.slice(0, -2).replace(/\B(?=(\d{3})+$)/g, ",") + "." + digits.slice(-2);
  };
  const show = () => {
    const amount = cents(input.value);
    if (result) result.hidden = true; // its words are those of another amount
    for (const total of totals) {
      if (amount !== null) total.textContent = money(pesos ? amount * scale / BigInt(total.dataset.total) : (amount * BigInt(total.dataset.total) + scale / 2n) / scale);
      total.closest(".total, .result").hidden = amount === null || total.closest(".result") !== null;
    }
  };
  if (input) input.addEventListener("input", show);
})();
