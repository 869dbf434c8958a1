// Package command describes the commands of tasard: help, flags and function.
//
// Spec.Command makes a cobra command of a Spec, with the steps that all commands have in common. The command resolves
// and checks its settings before it runs. A missing data directory or an unexpected argument is an error. A group of
// commands prints its help.
package command
