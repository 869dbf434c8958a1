// Package command describes the commands of tasard: help, flags and function.
//
// Spec.Command makes a command for the library cobra of a Spec, with the steps that all commands have in common. Before
// the command runs, it takes flags that are not on the command line from environment variables and the configuration
// file, and checks them. A missing data directory or an unexpected argument is an error. A group of commands prints its
// help.
package command
