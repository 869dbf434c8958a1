// Package intake implements tasard import, and serve --import (Import). An
// observation file is read line by line, a document by the definition of its
// source. Lines that are not published are reported; the import continues.
//
// Importing a file again changes nothing, so an interrupted import can be
// repeated. In a running node the import pauses between small reads, so that
// requests are served first.
//
// Rates of an imported document are history of their own dates, even the newest
// ones, because an old document has no rates of today.
package intake
