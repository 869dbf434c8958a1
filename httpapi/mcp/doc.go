// Package mcp gives a node's rates to language models, as a server of the Model Context Protocol. It asks the node over HTTP with httpapi/client, as any
// caller does: under the same limits, with a key of its own or none. It is the only package that knows the protocol's SDK, and only the
// command tasard mcp links it.
//
//	tool               asks                                      requests
//	best_rate          /v1/rates/best, or /v1/convert (amount)   1
//	convert            /v1/convert                               1
//	rate_history       /v1/rates/history                         1, or 2 where there are more rows than are wanted
//	list_currencies    /v1/currencies                            1
//	list_institutions  /v1/institutions                          1 for each 200
//
// # What a tool answers
//
// Structured content, with every decimal as the text that the node gave (a model that calculates with it makes its own mistakes, this package none),
// and a short text that says the same for people: value, institution, date, the notice about fees, and the attribution that the terms of use
// ask for. Each tool says that it only reads. What goes wrong is an error of the tool, not of the protocol, so that the model reads it, and it says
// what to do next (trouble.go).
//
// # Over HTTP
//
// Handler keeps no sessions: every request stands alone. It answers requests whose Host is this machine, or one of Config.Hosts, so that no page in a
// browser gets at it by a name of its own (DNS rebinding), and refuses requests that a page of another origin sends. Danger: it asks for nobody's
// name. Whoever reaches it spends the quota of its key.
//
// # Where to change what
//
//	a tool                    its row in tools.go, its work in offers.go, history.go or lists.go
//	what a parameter may be   constrain in tools.go
//	words for errors          trouble.go
//	the two transports        server.go; the end of a stream: stream.go
package mcp
