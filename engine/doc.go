// Package engine is what is true.
package engine
