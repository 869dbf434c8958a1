// Shows the contract with Swagger UI. Requests that are tried go to the server that this page came from, whatever address the contract
// names; a key that is typed stays in the memory of this page.
"use strict";

// Optional parameters begin empty: their examples, all put together, would ask for something that nobody publishes.
function emptied(contract) {
  const inline = Object.values(contract.paths).flatMap((path) => [path, ...Object.values(path)].flatMap((part) => part.parameters ?? []));
  for (const parameter of [...inline, ...Object.values(contract.components?.parameters ?? {})]) {
    if (!parameter.required) {
      delete parameter.example;
      delete parameter.examples;
    }
  }
  return contract;
}

// What the page around it says already: title, description, server.
const withoutHead = () => ({ components: { InfoContainer: () => null, ServersContainer: () => null } });

// What Swagger UI draws lacks names for some of its fields, and takes itself for the whole page. It draws whenever it likes, so this is
// done after each time.
function fitted(reference) {
  const operations = reference.querySelector("main");
  operations?.setAttribute("role", "region");
  operations?.setAttribute("aria-label", "Operations");
  for (const heading of reference.querySelectorAll("h3, h4")) {
    heading.setAttribute("aria-level", heading.localName === "h3" ? "2" : "3");
  }
  for (const field of reference.querySelectorAll("select, input:not([id]), textarea")) {
    const row = field.closest("tr");
    field.setAttribute("aria-label", row?.dataset.paramName ?? (row?.dataset.code ? `Choice of answer ${row.dataset.code}` : "Value"));
  }
  for (const block of reference.querySelectorAll("pre")) {
    block.tabIndex = 0;
  }
  for (const link of reference.querySelectorAll("button a[href]")) {
    link.removeAttribute("href"); // a link within a button: the button does the same, address included
  }
}

(async () => {
  try {
    const answer = await fetch("/openapi.json", { credentials: "omit" });
    if (!answer.ok) {
      throw new Error(`/openapi.json: ${answer.status}`);
    }
    const contract = emptied(await answer.json());
    contract.servers = [{ url: location.origin }];
    const reference = document.getElementById("reference");
    new MutationObserver(() => fitted(reference)).observe(reference, { childList: true, subtree: true });
    SwaggerUIBundle({
      spec: contract,
      domNode: reference,
      layout: "BaseLayout",
      presets: [SwaggerUIBundle.presets.apis],
      plugins: [withoutHead],
      deepLinking: true,
      docExpansion: "list",
      defaultModelsExpandDepth: 0,
      persistAuthorization: false,
      requestSnippetsEnabled: false,
      tryItOutEnabled: true,
      validatorUrl: null,
    });
  } catch (problem) {
    console.error(problem);
    document.getElementById("reference-failed").hidden = false;
  }
})();
