package fetch

import (
	"context"
	"sync"
	"time"

	"github.com/tasard/tasard/collectors/source"
)

// detailBytesMax bounds what a failure says: parts of it come from the server.
const detailBytesMax = 1000

// Client fetches documents. Its methods are safe for concurrent use.
type Client struct {
	config Config
	jitter jitter
	hosts  keyedLocks[hostState]
	robots keyedLocks[robotsState]
	cache  documentCache

	mu      sync.Mutex
	closed  bool
	cancels map[*session]context.CancelFunc // of the fetches under way
	running sync.WaitGroup
}

// New makes a client. It opens nothing; Close ends what Fetch opens. A Config without a Clock is a fault of the program: New panics.
func New(config Config) *Client {
	config = config.withDefaults()
	return &Client{config: config, jitter: jitter{random: config.Random}, cancels: map[*session]context.CancelFunc{}}
}

// Fetch gets the document of one page of a source, by its place in d.Pages. The error is a *source.Failure. All connections are closed
// when it returns. The body belongs to the caller.
func (c *Client) Fetch(ctx context.Context, d *source.Definition, page int) (*source.Document, error) {
	if page < 0 || page >= len(d.Pages) {
		return nil, source.Failf(source.Internal, "%s has no page %d; it has %d", d.ID, page, len(d.Pages))
	}
	ctx, cancel := context.WithTimeout(ctx, c.config.FetchTimeout)
	defer cancel()
	document, f := c.fetch(ctx, cancel, d, page)
	if f != nil {
		f.failure.Page = d.Pages[page].Name
		f.failure.Detail = sanitize(f.failure.Detail, detailBytesMax)
		return nil, f.failure
	}
	return document, nil
}

func (c *Client) fetch(ctx context.Context, cancel context.CancelFunc, d *source.Definition, page int) (*source.Document, *fetchError) {
	lines := &connections{ctx: ctx, dial: c.config.Dial}
	defer lines.closeAll()
	s, f := c.newSession(d, page, lines)
	if f != nil {
		return nil, f
	}
	if !c.begin(s, cancel) {
		return nil, newFetchError(source.Network, "the client is closed")
	}
	defer c.finish(s)
	return s.run(ctx)
}

// begin counts a Fetch in, unless the client is closed.
func (c *Client) begin(s *session, cancel context.CancelFunc) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.cancels[s] = cancel
	c.running.Add(1)
	return true
}

func (c *Client) finish(s *session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.cancels, s)
	c.running.Done()
}

// Close ends the fetches that are under way and waits for them. A Fetch after it fails.
func (c *Client) Close() {
	c.mu.Lock()
	c.closed = true
	for _, end := range c.cancels {
		end()
	}
	c.mu.Unlock()
	c.running.Wait()
}

// hostState is what is known of a host between two requests.
type hostState struct {
	nextRequest time.Time // when the next request may begin
	pause       time.Duration
}

// wait is how long to wait until the host may be asked again; never longer than the pause, also when the clock was put back.
func (h hostState) wait(now time.Time) time.Duration {
	return min(h.nextRequest.Sub(now), h.pause)
}

// unlockHost gives the host to the next, who waits for the pause first.
func (c *Client) unlockHost(turn *keyedLock[hostState], asked time.Duration) {
	pause := max(c.config.Pause, asked)
	turn.value = hostState{nextRequest: c.config.Clock().Add(pause), pause: pause}
	c.hosts.unlock(turn)
}
