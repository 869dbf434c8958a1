// Package sources implements tasard sources and tasard definitions.
//
//	list, run          ask a running node
//	check              fetches documents from the sites of the sources, with the same limits and user agent as a node
//	parse              reads a file, such as a saved page of a source
//	replay, diff       read documents of the archive again (collectors/archive)
//
// Only run publishes rates; only check --save writes to the archive. tasard import uses FindDefinition, FindPage and
// ReadDocument too.
package sources
