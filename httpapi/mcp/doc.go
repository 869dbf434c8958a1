// Package mcp offers the rates of a node to language models, as a server of the Model Context Protocol. It reads the
// node over HTTP with httpapi/client, under the same limits as other callers. Only the command tasard mcp links it.
//
//	tool               reads                                     requests
//	best_rate          /v1/rates/best, or /v1/convert (amount)   1
//	convert            /v1/convert                               1
//	rate_history       /v1/rates/history                         1, or 2 if it has more rows than wanted
//	list_currencies    /v1/currencies                            1
//	list_institutions  /v1/institutions                          1 for each 200
//
// # Results
//
// A result has structured content, with every decimal as the text of the node, and a short text for people with the
// notice about fees and the attribution. All tools are read-only. A failure is an error of the tool, not of the
// protocol, so that the model reads it; it says what to do next.
//
// # Over HTTP
//
// Handler keeps no sessions. It accepts requests whose Host is this machine or one of Config.Hosts, which stops DNS
// rebinding, and refuses pages of other origins. Danger: it does not authenticate clients, and all of them spend the
// quota of its key.
//
// # Where to start reading
//
//	tools.go    the tools and what their parameters may be; offers.go, history.go, lists.go: what they do
//	errors.go   what an error advises
//	server.go   the two transports; stream.go: the end of a stream
package mcp
