// Package mcp serves the rates of a node to language models over the Model Context Protocol, with the official SDK. It
// requests data from the node over HTTP with httpapi/client, under the same limits as other clients. Only the command
// tasard mcp uses this package.
//
//	tool               operations of the node                    requests to the node
//	best_rate          /v1/rates/best; with amount /v1/convert   1
//	convert            /v1/convert                               1
//	rate_history       /v1/rates/history                         1, or 2 if there are more rows than the limit
//	list_currencies    /v1/currencies                            1
//	list_institutions  /v1/institutions                          1 for each 200 institutions
//
// A result is a text with the attribution and the notice about fees, and the same as structured content, with every
// decimal as the node's text. All tools are read-only. A failure is an error of the tool, not of the protocol. So the
// model can read it, including advice on the next step.
package mcp
