// Package command describes the commands of tasard: help, flags and function.
//
// Spec.Command turns a Spec into a command of the library cobra, with the steps common to all commands. Before it runs,
// the command sets missing flags from environment variables and the configuration file, and checks them. A missing data
// directory or an unexpected argument is an error. A group of commands prints its help.
//
// A setting is a flag that an environment variable (TASARD_...) or a line of the configuration file can set too. Flags,
// variables and the file use the same parser, so they accept the same values and give the same errors. A flag overrides
// a variable, and a variable overrides the file. Unknown variables, and unknown names in the file, are errors in every
// command.
//
//	command.go   a command
//	values.go    kinds of values
//	node.go      the table of settings; errors of a node, with names of flags
//	settings.go  precedence, variables, the configuration file
//
// To add a setting, add a row to node.go: its group in the help, name, kind, usage, and field of node.Config. If the
// node can return errors about this field, add the field to flagForField.
//
// The address for Prometheus (--metrics-listen) must name its host, so that metrics are not public by accident.
package command
