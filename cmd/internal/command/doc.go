// Package command is the row that every command of tasard is made of: its help,
// its flags and its work. Cobra reads the rows; what all commands have alike is
// done here once: settings are complete and good before the work begins, a
// command that needs a data directory has one, unexpected arguments are refused,
// and a group of commands prints its help.
package command
