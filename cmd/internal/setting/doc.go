// Package setting defines settings: flags that a variable (TASARD_...) or a line
// of the configuration file can set too. All three use one parser, so that they
// accept the same texts and report the same errors. A flag wins over a variable,
// a variable over the file. Every command refuses unknown names.
//
//	values.go    kinds of values
//	node.go      the settings of a node, and its errors in the names of the flags
//	settings.go  precedence, variables, the configuration file
//
// To add a setting, add a line to node.go with its kind, name, group and help, and
// the field of node.Config that it sets. If the node has errors about that field,
// add it to flagForField.
//
// An address for Prometheus (--metrics-listen) must name its host, so that metrics
// are not public by accident (decision O16).
package setting
