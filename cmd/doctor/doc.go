// Package doctor is tasard doctor: it looks at everything around a node and
// says what would make it fail or lie. Each check is a method of doctor that
// notes findings; their order stands in examine.
//
// It changes nothing that lasts: the disk is timed with a scratch file while no
// node runs, the mail server is asked to log in and sent no letter, and hosts of
// institutions are reached with --network alone. The rehearsal of required keys
// (transition.go) puts a node together in memory, by node.OpenData and the
// core of the configuration that serve would open, and moves its clock.
//
// Where to add a check: a method with the signature of the others, in the file of
// its subject, and its name in the list of examine.
package doctor
