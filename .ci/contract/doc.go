// Program contract-check checks that a running node answers as its OpenAPI document promises. It queries the node
// with the client that oapi-codegen generates from the document with default options.
//
//	contract-check http://127.0.0.1:8080
//
// It is a module of its own, so that tasard does not depend on the generator. The script .ci/contract/check copies it
// to .tools/contract, generates the client there (package gen), and runs contract-check against a node with made-up
// rates (tasard demo). package.json pins the versions of other tools that read the OpenAPI document.
package main
