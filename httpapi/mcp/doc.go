// Package mcp serves the rates of a node to language models, with the Model Context Protocol of the official SDK. It
// requests the data from the node over HTTP with httpapi/client, and the same limits apply as to other clients. Only
// the command tasard mcp uses it.
//
//	tool               operations                                requests
//	best_rate          /v1/rates/best; with amount /v1/convert   1
//	convert            /v1/convert                               1
//	rate_history       /v1/rates/history                         1, or 2 if there are more rows than the limit
//	list_currencies    /v1/currencies                            1
//	list_institutions  /v1/institutions                          1 for each 200 institutions
//
// A result is a text with the attribution and the notice about fees, and the same as structured content, in which every
// decimal is the text that the node sent. All tools are read-only. A failure is an error of the tool, not of the
// protocol, so that the model can read it; it says what to do next.
//
// Handler serves the same over HTTP, stateless, to clients of this machine: the SDK refuses other host names, which
// prevents DNS rebinding. Danger: it does not authenticate clients, and all share the quota of the client.
package mcp
