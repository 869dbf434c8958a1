package apitest

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/tasard/tasard/httpapi"
)

// Request is a request that the node received.
type Request struct {
	At     time.Time   `json:"at"` // time of Node.Clock
	Method string      `json:"method"`
	Path   string      `json:"path"`  // as sent, with its percent-encoding
	Query  string      `json:"query"` // as sent
	Header http.Header `json:"header"`
	Body   []byte      `json:"body"`
	Status int         `json:"status"` // status of the response
}

const requestsMax = 10_000 // maximum number of requests in a requestLog

// requestLog has the newest requests. When it is full, it drops the older half.
type requestLog struct {
	mu   sync.Mutex
	list []Request
}

func (r *requestLog) add(request Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.list) == requestsMax {
		r.list = slices.Delete(r.list, 0, requestsMax/2)
	}
	r.list = append(r.list, request)
}

func (r *requestLog) all() []Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.list)
}

const loggedRequestsMax = 10 // maximum number of requests that a failing test logs

// newest returns the last loggedRequestsMax requests as lines of text, oldest first.
func (r *requestLog) newest() []string {
	all, lines := r.all(), []string{}
	for _, request := range all[max(0, len(all)-loggedRequestsMax):] {
		lines = append(lines, fmt.Sprintf("%s %s?%s: %d", request.Method, request.Path, request.Query, request.Status))
	}
	return lines
}

func (r *requestLog) clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = nil
}

// middleware records every request, and makes it fail if a Fault affects it.
func (n *Node) middleware(next fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		request := copyRequest(ctx, n.Clock.Now())
		fault, hasFault := n.faults.take(request.Method, request.Path)
		if hasFault {
			delayRequest(ctx, fault.Delay)
			if err := fault.error(); err != nil {
				httpapi.Plant(ctx, err)
			}
		}
		next(ctx)
		request.Status = ctx.Response.StatusCode()
		n.requests.add(request)
		if hasFault {
			truncateResponse(ctx, &fault)
		}
	}
}

// copyRequest copies a request, because fasthttp reuses its buffers.
func copyRequest(ctx *fasthttp.RequestCtx, now time.Time) Request {
	uri, header := ctx.URI(), http.Header{}
	for name, value := range ctx.Request.Header.All() {
		header.Add(string(name), string(value))
	}
	return Request{
		At: now, Method: string(ctx.Method()), Path: string(uri.PathOriginal()), Query: string(uri.QueryString()), Header: header, Body: slices.Clone(ctx.Request.Body()),
	}
}

// delayRequest waits for the delay of a Fault. It returns early if the connection is being ended (conn.end).
func delayRequest(ctx *fasthttp.RequestCtx, wait time.Duration) {
	c, ok := ctx.Conn().(*conn)
	if wait == 0 || !ok {
		return
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.closing:
	}
}

// truncateResponse limits how many bytes of the response are written, as Fault.Drop and Fault.Truncate require.
func truncateResponse(ctx *fasthttp.RequestCtx, fault *Fault) {
	c, ok := ctx.Conn().(*conn)
	body := len(ctx.Response.Body())
	switch {
	case !ok:
	case fault.Drop:
		c.limitWrites(0)
	case fault.Truncate > 0 && fault.Truncate < body:
		ctx.SetConnectionClose()
		ctx.Response.Header.SetContentLength(body)
		c.limitWrites(len(ctx.Response.Header.Header()) + fault.Truncate)
	}
}
