// Program contract-check calls a running node through the client that oapi-codegen generates from its OpenAPI document
// with default options, and checks that the answers are those that the document promises.
//
//	contract-check http://127.0.0.1:8080
//
// It is a separate module, so that the generator does not become a dependency of the program. .ci/contract/check
// copies it to .tools/contract, generates the client there as package gen, and runs it against a demo. The other
// tools that read the document are pinned in package.json.
package main
