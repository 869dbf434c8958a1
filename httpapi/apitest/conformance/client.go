package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tasard/tasard/httpapi/client"
)

const (
	requestTimeout = 30 * time.Second
	attemptsMax    = 3              // maximum number of attempts for one request
	bodyMax        = 8 << 20        // maximum number of bytes of a response body
	waitMax        = 25 * time.Hour // longest wait: enough to reach the quota of the next day
	accountPath    = "/v1/account/"
)

// recordingClient sends requests and records all responses, because some rules check every response. Its own method
// send can send requests that are invalid on purpose. Valid requests usually go through dataClient and accountClient.
type recordingClient struct {
	ctx           context.Context
	base          string
	options       Options
	http          *http.Client
	dataClient    *client.Client // waits and retries if a limit is exceeded
	accountClient *client.Client // never retries
	configErr     error          // error of creating dataClient or accountClient
	responses     []*response
	emailCount    int // number of addresses that newAddress has returned
}

func newRecordingClient(ctx context.Context, base string, options Options) *recordingClient {
	if options.Wait == nil {
		options.Wait = func(wait time.Duration) {
			timer := time.NewTimer(wait)
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-ctx.Done():
			}
		}
	}
	if options.Domain == "" {
		options.Domain = "conformance.example"
	}
	c := &recordingClient{ctx: ctx, base: base, options: options}
	httpClient := http.Client{Timeout: requestTimeout}
	if options.Client != nil {
		httpClient = *options.Client
	}
	if httpClient.Transport == nil {
		httpClient.Transport = &http.Transport{Proxy: http.ProxyFromEnvironment, DisableCompression: true}
	}
	httpClient.Transport = &recorder{httpClient.Transport, c}
	httpClient.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.http = &httpClient
	config := client.Config{BaseURL: base, HTTPClient: c.http, Key: client.Secret(options.Key), Retries: attemptsMax, WaitMax: waitMax, BodyMax: bodyMax,
		Wait: func(ctx context.Context, wait time.Duration) error {
			options.Wait(wait)
			return ctx.Err()
		}}
	if c.dataClient, c.configErr = client.New(config); c.configErr == nil {
		config.Key, config.Retries = "", client.NoRetries
		c.accountClient, c.configErr = client.New(config)
	}
	return c
}

// reach returns an error if the server does not answer. Otherwise every rule would fail for this reason.
func (c *recordingClient) reach() error {
	if c.configErr != nil {
		return c.configErr
	}
	req, err := http.NewRequestWithContext(c.ctx, http.MethodOptions, c.base+"/v1/currencies", http.NoBody)
	if err != nil {
		return err
	}
	res, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("nothing answers at %s: %w. A node of package apitest is reached only by its own client: set Options.Client, or start it with OnPort", c.base, err)
	}
	return res.Body.Close()
}

// recorder is a RoundTripper that records every response with its raw body.
type recorder struct {
	next   http.RoundTripper
	client *recordingClient
}

// RoundTrip implements http.RoundTripper.
func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Header.Get("Accept-Encoding") == "" {
		req = req.Clone(req.Context())
		req.Header.Set("Accept-Encoding", "identity")
	}
	res, err := r.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, bodyMax))
	if err = errors.Join(err, res.Body.Close()); err != nil {
		return nil, fmt.Errorf("status %d: read the body: %w", res.StatusCode, err)
	}
	res.Body = io.NopCloser(bytes.NewReader(body))
	target := strings.TrimPrefix(req.URL.String(), r.client.base)
	r.client.responses = append(r.client.responses, &response{req.Method, target, res.StatusCode, res.Header, body})
	return res, nil
}

// last returns the newest response.
func (c *recordingClient) last() *response { return c.responses[len(c.responses)-1] }

// response is a recorded response, with the method of its request and the target: path and query.
type response struct {
	method, target string
	status         int
	header         http.Header
	body           []byte
}

func (res *response) String() string {
	return fmt.Sprintf("%s %s: %d", res.method, res.target, res.status)
}

// isData reports whether the request was for data, not for an account.
func (res *response) isData() bool { return !strings.HasPrefix(res.target, accountPath) }

type request struct {
	method, target, body string
	header               []string // names and values, alternating
	waitForLimit         bool     // if the status is 429, wait and send the request again
}

// send sends a request. If waitForLimit is set and the status is 429, it waits for the time in Retry-After and sends
// the request again.
func (k *ruleRun) send(r request) *response {
	for range attemptsMax {
		res := k.sendOnce(r)
		if res.status != http.StatusTooManyRequests || !r.waitForLimit {
			return res
		}
		seconds, err := strconv.Atoi(res.header.Get("Retry-After"))
		if err != nil {
			k.fatalf("%s: Retry-After is %q", res, res.header.Get("Retry-After"))
		}
		k.options.Wait(time.Duration(seconds) * time.Second)
	}
	k.fatalf("%s %s: still 429 after waiting for Retry-After %d times", r.method, r.target, attemptsMax)
	return nil
}

func (k *ruleRun) sendOnce(r request) *response {
	var body io.Reader = http.NoBody
	if r.body != "" {
		body = strings.NewReader(r.body)
	}
	req, err := http.NewRequestWithContext(k.ctx, r.method, k.base+r.target, body)
	if err != nil {
		k.fatalf("%s %s: %v", r.method, r.target, err)
	}
	if r.body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if k.options.Key != "" && !strings.HasPrefix(r.target, accountPath) {
		req.Header.Set("Authorization", "Bearer "+k.options.Key)
	}
	for i := 0; i+1 < len(r.header); i += 2 {
		req.Header.Set(r.header[i], r.header[i+1])
	}
	res, err := k.http.Do(req)
	if err != nil {
		k.fatalf("%s %s: no answer: %v", r.method, r.target, err)
	}
	defer func() { _ = res.Body.Close() }()
	return k.last()
}

// get sends a GET. If the status is 429, it waits and sends the request again (waitForLimit).
func (k *ruleRun) get(target string, header ...string) *response {
	return k.send(request{method: http.MethodGet, target: target, header: header, waitForLimit: true})
}

// getOK sends a GET. It aborts the check of the rule if the status is not 200.
func (k *ruleRun) getOK(target string, header ...string) *response {
	res := k.get(target, header...)
	if res.status != http.StatusOK {
		k.fatalf("%s, want 200: %.300s", res, res.body)
	}
	return res
}

// list is a page of a list, with the fields that the rules read.
type list[T any] struct {
	Data []T
	Meta struct {
		Total       int
		NextCursor  *int
		GeneratedAt string
	}
}

func decode[T any](k *ruleRun, res *response) T {
	var value T
	if err := json.Unmarshal(res.body, &value); err != nil {
		k.fatalf("%s: the body is not the JSON of the API specification: %v: %.300s", res, err, res.body)
	}
	return value
}

// getList sends a GET and decodes the page.
func getList[T any](k *ruleRun, target string) list[T] { return decode[list[T]](k, k.getOK(target)) }

// withParameters appends query parameters to a target.
func withParameters(target, format string, args ...any) string {
	separator := "?"
	if strings.Contains(target, "?") {
		separator = "&"
	}
	return target + separator + fmt.Sprintf(format, args...)
}

// getAllPages returns the items of all pages of a list. It requests the pages with the given limit.
func getAllPages[T any](k *ruleRun, target string, limit int) []T {
	var all []T
	for cursor, pages := 0, 0; ; pages++ {
		page := getList[T](k, withParameters(target, "limit=%d&cursor=%d", limit, cursor))
		all = append(all, page.Data...)
		if page.Meta.NextCursor == nil {
			return all
		}
		if *page.Meta.NextCursor != cursor+len(page.Data) || len(page.Data) == 0 || pages > 1000 {
			k.fatalf("%s: after %d items from %d nextCursor is %d", target, len(page.Data), cursor, *page.Meta.NextCursor)
		}
		cursor = *page.Meta.NextCursor
	}
}

// errorBody is the body of an error response.
type errorBody struct {
	Error struct {
		Code      string
		Message   string
		RequestID string
		Details   []errorDetail
	}
}

// errorDetail is one item of errorBody.Error.Details.
type errorDetail struct {
	Path    []any
	Message string
}

// wantError sends a GET and reports a problem if the response does not have the given status and error code.
func (k *ruleRun) wantError(target string, status int, code string) errorBody {
	res := k.get(target)
	return k.checkError(res, status, code)
}

func (k *ruleRun) checkError(res *response, status int, code string) errorBody {
	if res.status != status {
		k.errorf("%s, want %d %s: %.300s", res, status, code, res.body)
		return errorBody{}
	}
	f := decode[errorBody](k, res)
	if f.Error.Code != code {
		k.errorf("%s: error.code is %q, want %q", res, f.Error.Code, code)
	}
	return f
}

// wantBadParameter sends a GET and reports a problem if the response is not an error 400 whose details name the query
// parameter.
func (k *ruleRun) wantBadParameter(target, name string) {
	f := k.wantError(target, http.StatusBadRequest, "invalid_parameters")
	if !slices.ContainsFunc(f.Error.Details, func(d errorDetail) bool { return len(d.Path) > 0 && d.Path[0] == name }) {
		k.errorf("GET %s: no detail with the path %q: %+v", target, name, f.Error.Details)
	}
}

// notFoundPaths returns a check that the server answers a GET of each target (path and query) with 404.
func notFoundPaths(targets ...string) func(*ruleRun) {
	return func(k *ruleRun) {
		for _, target := range targets {
			k.wantError(target, http.StatusNotFound, "not_found")
		}
	}
}

// badParameters returns a check that the server answers a GET of each target with 400, and that the error names the
// query parameter name.
func badParameters(name string, targets ...string) func(*ruleRun) {
	return func(k *ruleRun) {
		for _, target := range targets {
			k.wantBadParameter(target, name)
		}
	}
}
