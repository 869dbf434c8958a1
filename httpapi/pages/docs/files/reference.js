// Shows the contract with Swagger UI. Requests that are tried go to the server that this page came from, whatever address the contract
// names; a key that is typed stays in the memory of this page.
"use strict";

(async () => {
  try {
    const answer = await fetch("/openapi.json", { credentials: "omit" });
    if (!answer.ok) {
      throw new Error(`/openapi.json: ${answer.status}`);
    }
    const contract = await answer.json();
    contract.servers = [{ url: location.origin }];
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
