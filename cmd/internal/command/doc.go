// Package command describes the commands of tasard: help, flags and function.
//
// A Spec becomes a cobra command, with the steps that all commands share: settings
// are resolved and checked before the work begins, a missing data directory and
// unexpected arguments are errors, and a group of commands prints its help.
package command
