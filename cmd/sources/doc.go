// Package sources implements tasard sources: list, check and parse. None of them
// stores anything, and only list asks a running node. check fetches documents as
// a collector does, with its limits and its user agent.
//
// FindDefinition, FindPage and ReadDocument are shared with tasard import.
package sources
