package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// call is a request to send.
type call struct {
	method, path string // path is percent-encoded
	query        url.Values
	body         any    // nil = none
	secret       string // for the Authorization header; "" = none
	idempotent   bool
}

// target returns the path with the query.
func (q *call) target() string {
	if len(q.query) == 0 {
		return q.path
	}
	return q.path + "?" + q.query.Encode()
}

// get returns a call that gets rates or other data, with Config.Key.
func (c *Client) get(path string, query url.Values) *call {
	return &call{method: http.MethodGet, path: path, query: query, secret: string(c.config.Key), idempotent: true}
}

// ErrNoResponse is wrapped by the error of a request that got no response, because it could not connect or the
// connection broke.
var ErrNoResponse = errors.New("no answer")

func noResponse(err error) error { return fmt.Errorf("%w: %w", ErrNoResponse, err) }

// sendOnce sends a call once and returns the body of the response.
func (c *Client) sendOnce(ctx context.Context, q *call) ([]byte, error) {
	request, err := c.request(ctx, q)
	if err != nil {
		return nil, err
	}
	response, err := c.http.Do(request)
	if err != nil {
		var urlErr *url.Error // its text contains method and URL, which send adds anyway
		if errors.As(err, &urlErr) {
			err = urlErr.Err
		}
		return nil, noResponse(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, c.config.BodyMax+1))
	if err != nil {
		return nil, noResponse(fmt.Errorf("the body breaks off after %d bytes: %w", len(body), err))
	}
	if info, ok := ctx.Value(infoKey{}).(*ResponseInfo); ok {
		*info = *readResponseInfo(response)
	}
	if int64(len(body)) > c.config.BodyMax {
		return nil, fmt.Errorf("the answer has more than %d bytes (Config.BodyMax)", c.config.BodyMax)
	}
	if response.StatusCode/100 != 2 {
		return nil, readError(response, body).redact(q.secret)
	}
	return body, nil
}

func (c *Client) request(ctx context.Context, q *call) (*http.Request, error) {
	var body io.Reader = http.NoBody
	if q.body != nil {
		encoded, err := json.Marshal(q.body)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(ctx, q.method, c.base+q.target(), body)
	if err != nil {
		return nil, err
	}
	if q.body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if q.secret != "" {
		request.Header.Set("Authorization", "Bearer "+q.secret)
	}
	request.Header.Set("User-Agent", c.config.UserAgent)
	return request, nil
}

// validator is a response that can validate itself.
type validator interface{ validate() error }

// send sends a call with retries and decodes the response into result. A nil result means that the response has no
// body.
func (c *Client) send(ctx context.Context, q *call, result validator) error {
	body, err := c.sendWithRetries(ctx, q)
	if err == nil && result != nil {
		err = decode(body, result)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", q.method, q.target(), err)
	}
	return nil
}

// decode decodes and validates a body.
func decode(body []byte, result validator) error {
	if err := json.Unmarshal(body, result); err != nil {
		return fmt.Errorf("the response is not JSON as in the API specification: %w", err)
	}
	if err := result.validate(); err != nil {
		return fmt.Errorf("the response does not match the API specification: %w", err)
	}
	return nil
}
