package fetch

import (
	"context"
	"sync"
	"time"

	"github.com/tasard/tasard/collectors/source"
)

// detailBytesMax bounds the text of a failure: parts of it come from the server.
const detailBytesMax = 1000

// Client fetches documents. Its methods are safe for concurrent use.
type Client struct {
	config Config
	jitter jitter
	hosts  keyedLocks[hostState]
	robots keyedLocks[robotsState]
	cache  documentCache

	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	mu      sync.Mutex // keeps running.Add apart from Close
	running sync.WaitGroup
}

// New returns a client. It panics if config has no Clock. Call Close when done.
func New(config Config) *Client {
	config = config.withDefaults()
	ctx, cancel := context.WithCancel(context.Background())
	return &Client{config: config, jitter: jitter{random: config.Random}, ctx: ctx, cancel: cancel}
}

// Fetch returns the document of page d.Pages[page]. The error is a *source.Failure. All connections of the fetch are
// closed when it returns. The caller owns the body.
func (c *Client) Fetch(ctx context.Context, d *source.Definition, page int) (*source.Document, error) {
	if page < 0 || page >= len(d.Pages) {
		return nil, source.Failf(source.Internal, "%s has no page %d; it has %d", d.ID, page, len(d.Pages))
	}
	ctx, cancel := context.WithTimeout(ctx, c.config.FetchTimeout)
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)()
	document, failed := c.fetch(ctx, d, page)
	if failed != nil {
		failed.failure.Page = d.Pages[page].Name
		failed.failure.Detail = sanitize(failed.failure.Detail, detailBytesMax)
		return nil, failed.failure
	}
	return document, nil
}

func (c *Client) fetch(ctx context.Context, d *source.Definition, page int) (*source.Document, *fetchError) {
	if !c.start() {
		return nil, newFetchError(source.Network, "the client is closed")
	}
	defer c.running.Done()
	opened := &connections{ctx: ctx, dial: c.config.Dial}
	defer opened.closeAll()
	s, failed := c.newSession(d, page, opened)
	if failed != nil {
		return nil, failed
	}
	return s.run(ctx)
}

// start registers a Fetch, unless the client is closed.
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

// hostState is when a host may be asked again.
type hostState struct {
	nextRequest time.Time
	pause       time.Duration
}

// wait returns how long to wait for the next request. It never exceeds the pause, even if the clock was set back.
func (h hostState) wait(now time.Time) time.Duration {
	return min(h.nextRequest.Sub(now), h.pause)
}

// unlockHost starts the pause of a host and unlocks it. crawlDelay is the delay that its robots.txt asks for.
func (c *Client) unlockHost(lock *keyedLock[hostState], crawlDelay time.Duration) {
	pause := max(c.config.Pause, crawlDelay)
	lock.value = hostState{nextRequest: c.config.Clock().Add(pause), pause: pause}
	c.hosts.unlock(lock)
}
