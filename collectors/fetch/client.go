package fetch

import (
	"context"
	"sync"

	"github.com/tasard/tasard/collectors/source"
)

// detailBytesMax bounds Failure.Detail, which may quote the server.
const detailBytesMax = 1000

// Client fetches documents (web pages, JSON, workbooks) according to source definitions. Its methods are safe for
// concurrent use.
type Client struct {
	config Config
	hosts  sync.Map // *host by name
	robots sync.Map // robotsRules by origin
	tokens sync.Map // accessToken by id of the source
}

// New returns a client. It panics if config has no Clock.
func New(config Config) *Client { return &Client{config: config.withDefaults()} }

// Fetch returns the document of d.Pages[page]. The error is a *source.Failure. The caller may change the body.
// When Fetch returns, its connections are closed.
func (c *Client) Fetch(ctx context.Context, d *source.Definition, page int) (*source.Document, error) {
	ctx, cancel := context.WithTimeout(ctx, c.config.FetchTimeout)
	defer cancel()
	s, fetchErr := c.newSession(ctx, d, page)
	if fetchErr == nil {
		var document *source.Document
		if document, fetchErr = s.run(ctx); fetchErr == nil {
			return document, nil
		}
		fetchErr.failure.Detail = s.secrets.redact(fetchErr.failure.Detail)
	}
	fetchErr.failure.Page = d.Pages[page].Name
	fetchErr.failure.Detail = sanitize(fetchErr.failure.Detail, detailBytesMax)
	return nil, fetchErr.failure
}
