// Package mcp serves the rates of a node to language models, with the Model Context Protocol. It requests the data from
// the node over HTTP with httpapi/client, and the same limits apply as to other clients. Only the command tasard mcp
// uses it.
//
//	tool               operations                                requests
//	best_rate          /v1/rates/best; with amount /v1/convert   1
//	convert            /v1/convert                               1
//	rate_history       /v1/rates/history                         1, or 2 if there are more rows than the limit
//	list_currencies    /v1/currencies                            1
//	list_institutions  /v1/institutions                          1 for each 200 institutions
//
// # Results
//
// A result has structured content and a short text for people. In the structured content, every decimal is the text
// that the node sent. The short text includes the attribution and the notice about fees. All tools are read-only. A
// failure is reported as an error of the tool instead of an error of the protocol, so that the model can read it. The
// error says what to do next.
//
// # Over HTTP
//
// Handler is stateless. To prevent DNS rebinding, it accepts only requests whose Host is localhost, a loopback address
// or one of Config.Hosts. It rejects requests from pages of other origins. Danger: it does not authenticate clients,
// and all clients share the quota of Config.Client.
//
// # Where to start reading
//
//	tools.go    the tools and the schemas of their parameters; offers.go, history.go, lists.go: their functions
//	errors.go   advice that is added to errors
//	server.go   the two transports; stream.go: the end of a stream
package mcp
