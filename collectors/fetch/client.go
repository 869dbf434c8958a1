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
	jitter jitter
	hosts  hosts
	robots table[robotsRules] // by origin
	tokens table[accessToken] // by id of the source

	ctx     context.Context // cancelled by Close
	cancel  context.CancelFunc
	mu      sync.Mutex // guards running.Add against a concurrent Close
	running sync.WaitGroup
}

// New returns a client. It panics if config has no Clock. Call Close when done.
func New(config Config) *Client {
	config = config.withDefaults()
	ctx, cancel := context.WithCancel(context.Background())
	return &Client{config: config, jitter: jitter{random: config.Random}, ctx: ctx, cancel: cancel}
}

// Fetch returns the document of d.Pages[page]. The error is a *source.Failure. The caller may change the body.
// Fetch closes all its connections before it returns.
func (c *Client) Fetch(ctx context.Context, d *source.Definition, page int) (*source.Document, error) {
	if page < 0 || page >= len(d.Pages) {
		return nil, source.Failf(source.Internal, "%s has no page %d; it has %d", d.ID, page, len(d.Pages))
	}
	ctx, cancel := context.WithTimeout(ctx, c.config.FetchTimeout)
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)()
	document, fetchErr := c.fetch(ctx, d, page)
	if fetchErr != nil {
		fetchErr.failure.Page = d.Pages[page].Name
		fetchErr.failure.Detail = sanitize(fetchErr.failure.Detail, detailBytesMax)
		return nil, fetchErr.failure
	}
	return document, nil
}

func (c *Client) fetch(ctx context.Context, d *source.Definition, page int) (*source.Document, *fetchError) {
	if !c.start() {
		return nil, newFetchError(source.Network, "the client is closed")
	}
	defer c.running.Done()
	conns := &connections{ctx: ctx, dial: c.config.Dial}
	if conns.dial == nil {
		conns.dial = dialPublic(d)
	}
	defer conns.closeAll()
	s, fetchErr := c.newSession(d, page, conns)
	if fetchErr != nil {
		return nil, fetchErr
	}
	document, fetchErr := s.run(ctx)
	if fetchErr != nil {
		fetchErr.failure.Detail = s.secrets.redact(fetchErr.failure.Detail)
	}
	return document, fetchErr
}

// start adds a Fetch to c.running. It returns false if the client is closed.
func (c *Client) start() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil {
		return false
	}
	c.running.Add(1)
	return true
}

// Close cancels the running fetches and waits for them. A later Fetch fails.
func (c *Client) Close() {
	c.mu.Lock()
	c.cancel()
	c.mu.Unlock()
	c.running.Wait()
}
