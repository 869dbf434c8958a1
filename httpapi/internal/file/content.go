package file

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"

	"github.com/tasard/tasard/httpapi/internal/fields"
)

// Content is a version of a file. It is immutable and safe for concurrent use.
type Content struct {
	body, compressed []byte // compressed with gzip
	etag             string // weak, because both forms have the same
}

// ETag returns the ETag of a body, plain or compressed.
func ETag(body []byte) string {
	digest := sha256.Sum256(body)
	return string(fields.AppendETag(nil, digest[:]))
}

// New compresses a body, which the caller must not change any more.
func New(body []byte) *Content {
	var compressed bytes.Buffer
	writer := gzip.NewWriter(&compressed)
	_, writeErr := writer.Write(body)
	if err := errors.Join(writeErr, writer.Close()); err != nil {
		panic("file: compress into memory: " + err.Error())
	}
	return &Content{bytes.Clone(body), bytes.Clone(compressed.Bytes()), ETag(body)}
}

// ETag returns the ETag of the content.
func (c *Content) ETag() string { return c.etag }

// Body returns the uncompressed body. The caller must not change it.
func (c *Content) Body() []byte { return c.body }
