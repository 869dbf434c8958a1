// Package terminal is what people read of a command: lines, numbers and instants
// as they are written here, an output that remembers its first failure, and the
// log, as lines or as JSON.
//
// No text that others chose reaches a terminal or a log as something that either
// would obey, and no secret reaches a log by the names that secrets have.
package terminal
