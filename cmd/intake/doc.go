// Package intake implements tasard import, and serve --import (Import). An
// observation file is read line by line, a document by the definition of its
// source. Lines that are not published are reported and stop nothing.
//
// Importing a file again changes nothing, so an interrupted import is repeated.
// In a running node the reading pauses between small pieces, so that callers
// are served first.
//
// Rates of an imported document belong to their own dates, the newest too: an
// old document says nothing about today.
package intake
