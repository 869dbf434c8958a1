// Package fetch is under way.
package fetch
