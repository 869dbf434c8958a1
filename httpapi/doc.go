// Package httpapi is how the service is asked.
package httpapi
