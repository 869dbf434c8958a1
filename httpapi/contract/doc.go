// Package contract serves the contract of /v1 as documents. Of this module it imports only internal/fields; tests of
// package httpapi compare the documents with the node.
//
//	path                        document
//	/openapi.yaml               OpenAPI, written by hand (openapi.yaml)
//	/openapi.json               the same, generated (openapi.json)
//	/.well-known/api-catalog    a link set to all documents (RFC 9727, RFC 9264)
//	/postman.json               a Postman collection v2.1, generated (postman.json)
//	/llms.txt                   a page for language models (llmstxt.org)
//
// All are public and cached for an hour, with an ETag, and open to pages of every origin. AddLinks adds links to the
// contract to any other answer.
//
// # How to change the contract
//
// Edit openapi.yaml and run "go test ./httpapi/contract -update", which generates openapi.json and postman.json. Then
// run the tests of ./httpapi: they compare paths, parameters, bodies, error codes, statuses, headers and examples with
// the node, in both directions. "make contract" runs Redocly, Spectral, oapi-codegen, openapi-typescript and the
// Postman library on it.
//
// The document is written so that generators understand it: nullable fields are lists of types ([string, "null"]);
// parameters, schemas and responses have different names; there is no const, anyOf or allOf; objects are closed. HEAD,
// OPTIONS and 405 are described in words, because as operations they would double every generated client.
package contract
