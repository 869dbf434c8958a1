// Package sources implements tasard sources and tasard definitions.
//
//	list, run          ask a running node
//	check              fetches documents from the sites of the sources, with the same limits and user agent as a node
//	parse              reads a file, such as a saved page of a source
//
// Only run publishes rates. tasard import uses FindDefinition, FindPage and
// ReadDocument too.
package sources
