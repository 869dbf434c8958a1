// Package exit is the exit codes of tasard: which there are, an error that knows
// its code (Errorf, Wrap), and the code of one that does not (Code). They follow
// sysexits.h, so that a service manager can tell what a restart would cure.
//
// Only commands know exit codes: the packages below say what was wrong, and the
// code is told from that.
package exit
