// Package sources implements tasard sources: list, check and parse. They store nothing. list asks a running node.
// check fetches documents from the sites of the sources, with the limits and the user agent of the collector. parse
// reads a file.
//
// tasard import uses FindDefinition, FindPage and ReadDocument too.
package sources
