// Package sources implements tasard sources: list, check and parse. None of the three changes stored data. list asks a
// running node. check fetches documents from the sites of the sources, with the same limits and user agent as a node.
// parse reads a file, such as a saved page of a source.
//
// tasard import uses FindDefinition, FindPage and ReadDocument too.
package sources
