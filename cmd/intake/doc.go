// Package intake implements tasard import, and serve --import (Import). It imports two kinds of files: observation
// files, line by line, and documents, such as saved pages, with the definition of their source. Lines that are not
// published are reported; the import continues.
//
// Importing a file again changes nothing, so an interrupted import can be repeated. In a running node the import
// pauses between small reads, so that requests are served first.
//
// All rates of an imported document become history of their own dates. Not even the newest ones become current rates,
// because a saved document may be old.
package intake
