// Package setting is what a flag, a variable (TASARD_...) and a line of the
// configuration file set alike. Names three go through one value, so that they
// take the same texts and refuse the same ones with the same words. The flag
// wins over the variable, the variable over the file; what no command knows is
// an error of every command.
//
// values.go has the kinds of values, node.go the settings of a node, and its
// errors in the names of the flags, settings.go their precedence.
//
// Where to add a setting: a line in node.go with its kind, name and help, and
// the field of node.Config that it sets; in flagForField the name of the flag, where
// the node has an error about that field.
//
// An address for Prometheus (--metrics-listen) names its host, so that nobody is
// shown everything by leaving it out (decision O16).
package setting
