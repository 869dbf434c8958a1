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
	bucketCodeKey = "seal"  // name of the JetStream key-value bucket that has the key
	entryCodeKey  = "codes" // name of the entry in the bucket
	codeKeyBytes  = 32
)

// LoginCodeKey returns the secret key with which nodes hash the login codes that users get by e-mail. All nodes have
// the same key, so that a login code of one node is valid on all nodes. The first node generates the key. Other nodes
// get it from the cluster and store it in their directories, so that they can later start without the cluster.
// LoginCodeKey waits until it has the key or ctx ends.
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

// readCodeKey reads the key from this node's directory. It returns false if the file is missing or damaged, or if the
// file names another JetStream stream (the log that the nodes share) than this node's.
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

// fetchCodeKey reads the key from the cluster. If the cluster has no key, it generates one. If two nodes generate a key
// at the same time, one of them gets an error. The next call on that node reads the key of the other node.
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
