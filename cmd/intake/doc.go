// Package intake implements tasard import, and serve --import (Import). It imports two kinds of files. An observation
// file has one observation in each line: a source's prices for one currency of one institution at one time. A document,
// such as a saved page of a source, is parsed according to the source's definition (a file that describes how to read
// its pages). Rejected lines are reported; the import continues.
//
// Importing a file again changes nothing, so an interrupted import can be repeated.
//
// All rates of an imported document become history of their own dates. Even the newest ones do not become current
// rates, because a saved document may be old.
package intake
