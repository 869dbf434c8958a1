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
	codeKeyFile   = "cluster.seal" // number of the stream, seal in hexadecimal digits
)

// LoginCodeKey is the secret with which every node seals login codes, so that a code that one node sent can be tried at another. It is drawn once
// for the life of the cluster. A node that has never had it waits until the cluster answers, or ctx ends; then it keeps it in its directory,
// so that it starts without the others.
func (c *Cluster) LoginCodeKey(ctx context.Context) ([]byte, error) {
	if secret, kept := c.readCodeKey(); kept {
		return secret, nil
	}
	for {
		secret, err := c.fetchCodeKey(ctx)
		if err == nil {
			return secret, c.writeCodeKey(secret)
		}
		c.logger.Debug("no seal yet", "cause", err.Error())
		if stop := sleep(ctx, joinRetryInterval); stop != nil {
			return nil, fmt.Errorf("get the seal of the cluster: %w; the last answer: %w", stop, err)
		}
	}
}

// readCodeKey is the seal as the directory has it: that of this stream, whole.
func (c *Cluster) readCodeKey() ([]byte, bool) {
	text, err := os.ReadFile(filepath.Join(c.config.Dir, codeKeyFile))
	stream, digits, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
	if err != nil || stream != c.streamID() {
		return nil, false
	}
	secret, err := hex.DecodeString(digits)
	return secret, err == nil && len(secret) == codeKeyBytes
}

func (c *Cluster) writeCodeKey(secret []byte) error {
	text := fmt.Appendf(nil, "%s %x\n", c.streamID(), secret)
	if err := replaceFile(filepath.Join(c.config.Dir, codeKeyFile), text); err != nil {
		return fmt.Errorf("keep the seal of the cluster: %w", err)
	}
	return nil
}

// fetchCodeKey reads the seal, or is the one that draws it. Whoever comes second reads what the first has drawn.
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
			return nil, fmt.Errorf("the seal has %d bytes, want %d", n, codeKeyBytes)
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
