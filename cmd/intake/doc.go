// Package intake takes files into a node: tasard import, and serve --import
// (Import). Files of observations are read line by line, documents of a
// source as its definition says; each line that is not published is told, and
// stops nothing.
//
// Reading a file twice changes nothing, so that an import that was interrupted
// is made again. Beside a node that answers the reading pauses between small
// pieces, so that callers go first.
//
// A document that is imported is of its own days, the newest one too (decision
// O10): it says nothing about today, and the same whenever it is read.
package intake
