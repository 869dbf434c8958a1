// Program contract-check asks a running node with the client that oapi-codegen makes of its OpenAPI document: whether a stranger's tool,
// with its default options, gets what the document promises.
//
//	contract-check http://127.0.0.1:8080
//
// It is a module of its own, so that nothing of the generator reaches the program. .ci/contract/check copies it to .tools/contract, has
// the client made there, as package gen, and runs it against a demo. The other tools that read the document are pinned in package.json.
package main
