// Package contract serves the specification of the API /v1 as documents. Of this module it imports only
// internal/rendered. Tests of package httpapi compare the documents with the node.
//
//	path                        document
//	/openapi.yaml               OpenAPI, written by hand (openapi.yaml)
//	/openapi.json               OpenAPI, generated from openapi.yaml (openapi.json)
//	/.well-known/api-catalog    a link set to all documents (RFC 9727, RFC 9264)
//	/llms.txt                   a page for language models (llmstxt.org)
//
// All documents are public. Caches may store them for an hour. Responses have an ETag, and web pages of every origin
// may read them (CORS). AddLinks adds Link headers to responses of other handlers; the links lead to the specification.
//
// # How to change the contract
//
// Edit openapi.yaml and run "go test ./httpapi/contract -update", which generates openapi.json. Then run the tests of
// ./httpapi. These tests fail for every path, parameter, body, error code, status, header or example that differs
// between the documents and the node. "make contract" checks the documents with Redocly, Spectral, openapi-typescript
// and quicktype.
//
// openapi.yaml uses only features that code generators support. Nullable fields have a list of types
// ([string, "null"]). Parameters, schemas and responses have different names. There is no const, anyOf or allOf.
// Objects allow no additional properties. HEAD, OPTIONS and 405 are described only in prose: as operations they would
// double the size of every generated client.
package contract
