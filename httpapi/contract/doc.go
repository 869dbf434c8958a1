// Package contract is the contract as documents: what a stranger, a program or a tool reads to learn how /v1 is asked. It knows nothing
// of the node and imports nothing of ours; what it says is held against the node by tests of package httpapi.
//
//	path                        is
//	/openapi.yaml               the OpenAPI document, as it was written by hand (openapi.yaml)
//	/openapi.json               the same as JSON, made of it (openapi.json)
//	/.well-known/api-catalog    where all of it is, as a link set (RFC 9727, RFC 9264)
//	/postman.json               a Postman collection (v2.1), made of the OpenAPI document (postman.json)
//	/llms.txt                   a page for language models (llmstxt.org), which leads to the others (llms.txt)
//
// All are public: GET, HEAD and OPTIONS, for pages of every origin, with an ETag and an hour of caching. AddLinks puts the links to
// the OpenAPI document and the documentation on the answers of the site; pages need not know of them.
//
// # How to change the contract
//
// Edit openapi.yaml, then "go test ./httpapi/contract -update" makes openapi.json and postman.json of it. Then run the tests of ./httpapi: they hold paths,
// parameters, bodies, error codes, statuses and headers of the document against the node's tables and golden answers, both ways, and
// each example against an answer that the node gave (document_test.go). "make contract" lets Redocly, Spectral, oapi-codegen,
// openapi-typescript and Postman's own library read it.
//
// What is in the document is there for tools as well as for people. Nullable fields are lists of types ([string, "null"]), which generators
// know; parameters, schemas and answers have different names, because generators make types of all of them; there is no "const", no
// "anyOf" and no "allOf", and objects are closed (K8).
//
// # Decisions
//
//   - C1: data operations need nothing or a key (interface §5.2); account operations need what they need, so that generated clients
//     send it.
//   - C2: HEAD and OPTIONS, and the 405 of other methods, are told in words: as operations they would double every generated client.
//   - C3: without a public address (Config.PublicURL) links are relative, and the collection starts at the default address of a node.
//   - C4: answers that end a connection which could not be read (408, 431) are named at every operation; a 413 where a body belongs.
package contract
