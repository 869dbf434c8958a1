package httpapi

import (
	"bytes"
	"slices"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/httpapi/internal/params"
	"github.com/tasard/tasard/httpapi/internal/rendered"
)

// route is a data operation (all of /v1 except /v1/account): one row of routes.
type route struct {
	pattern   string
	operation params.Operation
	// page returns the body, and the next expiry of a rate in the body or zero (engine.Page.ChangesAt). For convert,
	// page is nil.
	page func(d *dataAPI, q *params.Query, now requestTime) (*rendered.Body, time.Time, error)
	// fromCatalogue means that the operation needs only the catalogue (currencies and institutions), so it is ready
	// before rates are loaded.
	fromCatalogue bool
	id            routeID // set by newDataAPI
}

const institutionPattern = params.InstitutionPath + "{id}"

// routes returns the table of data operations. A new operation also needs a params.Operation and rows for its
// parameters in package params.
func routes() []route {
	return []route{
		{pattern: "/v1/currencies", operation: params.Currencies, page: (*dataAPI).currencies, fromCatalogue: true},
		{pattern: "/v1/institutions", operation: params.Institutions, page: (*dataAPI).institutions, fromCatalogue: true},
		{pattern: institutionPattern, operation: params.Institution, page: (*dataAPI).institution, fromCatalogue: true},
		{pattern: "/v1/rates", operation: params.Rates, page: (*dataAPI).rates},
		{pattern: "/v1/rates/best", operation: params.Best, page: (*dataAPI).best},
		{pattern: "/v1/rates/history", operation: params.History, page: (*dataAPI).history},
		{pattern: "/v1/convert", operation: params.Convert},
	}
}

// Routes returns the method and path of every operation, such as "GET /v1/rates/best", and of the health endpoints. GET
// includes HEAD, and every path also accepts OPTIONS. A final {id} stands for any path segment.
func Routes() []string {
	var all []string
	for _, r := range routes() {
		all = append(all, "GET "+r.pattern)
	}
	for _, op := range accountOperations() {
		all = append(all, op.method+" "+op.pattern)
	}
	return append(all, "GET "+livezPath, "GET "+healthzPath, "GET "+readyzPath)
}

// routeID identifies a route in the counters.
type routeID uint8

// Routes of requests without an operation.
const (
	routeRefused   routeID = iota // malformed: rejected before the path was looked up
	routeUnmatched                // neither an operation nor a page has the path
	routeAsterisk                 // OPTIONS *
	routeSite                     // pages and documents
)

// routeNames returns the values of the label "route" in the metrics, by routeID.
func routeNames() []string {
	names := []string{"refused", "none", "*", "site"}
	for _, r := range routes() {
		names = append(names, r.pattern)
	}
	for _, op := range accountOperations() {
		if !slices.Contains(names, op.pattern) {
			names = append(names, op.pattern)
		}
	}
	return append(names, livezPath, healthzPath, readyzPath)
}

// routeIDs is the inverse of routeNames.
func routeIDs() map[string]routeID {
	ids := map[string]routeID{}
	for i, name := range routeNames() {
		ids[name] = routeID(i)
	}
	return ids
}

// endpoint answers all requests for a path, with any method.
type endpoint struct {
	routeID routeID // for the counters
	answer  func(ctx *fasthttp.RequestCtx, a *requestState)
}

// byPath returns the entry for a path. The keys of entries are patterns, in which a final {id} stands for any segment.
func byPath[T any](entries map[string]T, path []byte) (found T, ok bool) {
	if found, ok = entries[string(path)]; ok {
		return found, true
	}
	for _, pattern := range [...]string{institutionPattern, keyPath} {
		id, isBelow := bytes.CutPrefix(path, bytesOf(pattern[:len(pattern)-len("{id}")]))
		if isBelow && len(id) > 0 && bytes.IndexByte(id, '/') < 0 {
			found, ok = entries[pattern]
			return found, ok
		}
	}
	return found, false
}

// splitTarget returns the undecoded path and query of a request target. conn.Malformed has checked that the target is
// "*" or begins with "/" or "scheme://host".
func splitTarget(target []byte) (path, query []byte) {
	if len(target) > 0 && target[0] != '/' {
		if _, afterScheme, isAbsolute := bytes.Cut(target, []byte("://")); isAbsolute {
			target = afterScheme
			if end := bytes.IndexAny(target, "/?"); end >= 0 {
				target = target[end:]
			} else {
				target = nil
			}
		}
	}
	path, query, _ = bytes.Cut(target, []byte("?"))
	return path, query
}
