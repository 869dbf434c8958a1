// Package sources is tasard sources: the list of sources and how a running node
// finds them, a check of what they publish now, and a try of a saved document.
//
// None of it stores anything or needs a node; check asks the institutions as a
// collector does, with its limits and its name. FindDefinition, FindPage and ReadDocument
// are what tasard import has of it: a source by id, its page, a saved file.
package sources
