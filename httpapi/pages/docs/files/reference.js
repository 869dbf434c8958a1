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

(async () => {
  try {
    const answer = await fetch("/openapi.json", { credentials: "omit" });
    if (!answer.ok) {
      throw new Error(`/openapi.json: ${answer.status}`);
    }
    const contract = emptied(await answer.json());
    contract.servers = [{ url: location.origin }];
    delete contract.info.description; // the guide says it
    SwaggerUIBundle({
      spec: contract,
      domNode: document.getElementById("reference"),
      layout: "BaseLayout",
      presets: [SwaggerUIBundle.presets.apis],
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
