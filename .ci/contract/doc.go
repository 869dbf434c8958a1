// Program contract-check queries a running node with the client that oapi-codegen generates from the node's OpenAPI
// document, with default options, and checks that the answers are what the document promises.
//
//	contract-check http://127.0.0.1:8080
//
// It is a module of its own, so that the program does not depend on the generator. .ci/contract/check copies it to
// .tools/contract, generates the client there, as package gen, and runs it against a demo. The other tools that read
// the document are pinned in package.json.
package main
