//go:build !nocluster

package cluster

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	bucketCodeKey = "seal"
	entryCodeKey  = "codes"
	codeKeyBytes  = 32
	codeKeyFile   = "cluster.seal" // stream ID and key, in hexadecimal digits
)

// LoginCodeKey returns the key with which all nodes hash login codes, so that a code sent by one node is valid at all
// nodes. It is generated once for the life of the cluster. A node that does not have it waits until the cluster
// replies or ctx ends. It stores the key in its directory, so that it can later start without other nodes.
func (c *Cluster) LoginCodeKey(ctx context.Context) ([]byte, error) {
	if secret, ok := c.readCodeKey(); ok {
		return secret, nil
	}
	for {
		secret, err := c.fetchCodeKey(ctx)
		if err == nil {
			return secret, c.writeCodeKey(secret)
		}
		c.logger.Debug("login-code key not available yet", "cause", err.Error())
		if ctxErr := sleep(ctx, joinRetryInterval); ctxErr != nil {
			return nil, fmt.Errorf("get the login-code key of the cluster: %w; the last answer: %w", ctxErr, err)
		}
	}
}

// readCodeKey returns the stored key, or false if the file is missing, damaged or of another stream.
func (c *Cluster) readCodeKey() ([]byte, bool) {
	text, err := os.ReadFile(filepath.Join(c.config.Dir, codeKeyFile))
	stream, digits, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
	if err != nil || stream != c.self.Load().Stream {
		return nil, false
	}
	secret, err := hex.DecodeString(digits)
	return secret, err == nil && len(secret) == codeKeyBytes
}

func (c *Cluster) writeCodeKey(secret []byte) error {
	text := fmt.Appendf(nil, "%s %x\n", c.self.Load().Stream, secret)
	if err := replaceFile(filepath.Join(c.config.Dir, codeKeyFile), text); err != nil {
		return fmt.Errorf("store the login-code key of the cluster: %w", err)
	}
	return nil
}

// fetchCodeKey reads the key from the cluster. If there is none, it generates and stores one. If another node does so
// at the same time, it returns an error, and the next call reads that node's key.
func (c *Cluster) fetchCodeKey(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	bucket, err := c.bucket(ctx, bucketCodeKey, 0)
	if err != nil {
		return nil, err
	}
	entry, err := bucket.Get(ctx, entryCodeKey)
	if err == nil {
		if n := len(entry.Value()); n != codeKeyBytes {
			return nil, fmt.Errorf("the login-code key has %d bytes, want %d", n, codeKeyBytes)
		}
		return entry.Value(), nil
	}
	if !errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, err
	}
	secret := make([]byte, codeKeyBytes)
	if _, err := io.ReadFull(c.config.Random, secret); err != nil {
		return nil, err
	}
	if _, err := bucket.Create(ctx, entryCodeKey, secret); err != nil {
		return nil, err
	}
	return secret, nil
}
