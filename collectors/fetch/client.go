package fetch

import (
	"context"

	"github.com/tasard/tasard/collectors/source"
)

// Client fetches documents. Its methods are safe for concurrent use.
type Client struct {
	config Config
}

// New makes a client. It opens nothing; Close ends what Fetch opens. A Config without a Clock is a fault of the program: New panics.
func New(config Config) *Client {
	return &Client{config: config.complete()}
}

// Fetch gets the document of one page of a source. The error is a *source.Failure.
func (c *Client) Fetch(_ context.Context, d *source.Definition, _ int) (*source.Document, error) {
	return nil, source.Fail(source.Internal, "%s: fetching is under way", d.ID)
}

// Close ends the fetches that are under way and waits for them. A Fetch after it fails.
func (c *Client) Close() {}
