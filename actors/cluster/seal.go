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
	bucketSeal = "seal"
	keySeal    = "codes"
	sealBytes  = 32
	sealName   = "cluster.seal" // number of the stream, seal in hexadecimal digits
)

// Seal is the secret with which every node seals login codes, so that a code that one node sent can be tried at another. It is drawn once
// for the life of the cluster. A node that has never had it waits until the cluster answers, or ctx ends; then it keeps it in its directory,
// so that it starts without the others.
func (c *Cluster) Seal(ctx context.Context) ([]byte, error) {
	if secret, kept := c.keptSeal(); kept {
		return secret, nil
	}
	for {
		secret, err := c.trySeal(ctx)
		if err == nil {
			return secret, c.keepSeal(secret)
		}
		c.logger.Debug("no seal yet", "cause", err.Error())
		if stop := pause(ctx, joinLook); stop != nil {
			return nil, fmt.Errorf("get the seal of the cluster: %w; the last answer: %w", stop, err)
		}
	}
}

// keptSeal is the seal as the directory has it: that of this stream, whole.
func (c *Cluster) keptSeal() ([]byte, bool) {
	text, err := os.ReadFile(filepath.Join(c.config.Dir, sealName))
	stream, digits, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
	if err != nil || stream != c.stream() {
		return nil, false
	}
	secret, err := hex.DecodeString(digits)
	return secret, err == nil && len(secret) == sealBytes
}

func (c *Cluster) keepSeal(secret []byte) error {
	text := fmt.Appendf(nil, "%s %x\n", c.stream(), secret)
	if err := replaceFile(filepath.Join(c.config.Dir, sealName), text); err != nil {
		return fmt.Errorf("keep the seal of the cluster: %w", err)
	}
	return nil
}

// trySeal reads the seal, or is the one that draws it. Whoever comes second reads what the first has drawn.
func (c *Cluster) trySeal(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, askWait)
	defer cancel()
	bucket, err := c.bucket(ctx, bucketSeal, 0)
	if err != nil {
		return nil, err
	}
	entry, err := bucket.Get(ctx, keySeal)
	if err == nil {
		if n := len(entry.Value()); n != sealBytes {
			return nil, fmt.Errorf("the seal has %d bytes, want %d", n, sealBytes)
		}
		return entry.Value(), nil
	}
	if !errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, err
	}
	secret := make([]byte, sealBytes)
	if _, err := io.ReadFull(c.config.Random, secret); err != nil {
		return nil, err
	}
	if _, err := bucket.Create(ctx, keySeal, secret); err != nil {
		return nil, err
	}
	return secret, nil
}
