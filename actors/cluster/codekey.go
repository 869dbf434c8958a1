//go:build !nocluster

package cluster

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
)

const codeKeyBytes = 32

// LoginCodeKey returns the secret key with which nodes hash the login codes that users get by e-mail. All nodes have
// the same key, so that a login code of one node is valid on all nodes. The node that creates the cluster generates the
// key. Other nodes get it from a node that has it and store it in their directories, so that they can later start
// without the cluster. LoginCodeKey waits until it has the key or ctx ends.
func (c *Cluster) LoginCodeKey(ctx context.Context) ([]byte, error) {
	for {
		if secret, ok := c.readCodeKey(); ok {
			return secret, nil
		}
		err := errNoBackup
		for _, h := range c.peers.reachable(c.config.Clock()) {
			if h.Name == c.config.Name {
				continue
			}
			var secret []byte
			if secret, err = c.fetchCodeKey(ctx, h.heartbeat); err == nil {
				return secret, c.writeCodeKey(secret)
			}
		}
		c.logger.Debug("login-code key not available yet", "cause", err.Error())
		if ctxErr := sleep(ctx, joinRetryInterval); ctxErr != nil {
			return nil, fmt.Errorf("get the login-code key of the cluster: %w; the last answer: %w", ctxErr, err)
		}
	}
}

// readCodeKey reads the key from this node's directory. It returns false if the file is missing or damaged, or if the
// file belongs to another log of a cluster than this node's.
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

// newCodeKey generates the key on the node that creates the cluster.
func (c *Cluster) newCodeKey() error {
	if _, ok := c.readCodeKey(); ok {
		return nil
	}
	secret := make([]byte, codeKeyBytes)
	if _, err := io.ReadFull(c.config.Random, secret); err != nil {
		return err
	}
	return c.writeCodeKey(secret)
}

// sendCodeKey answers a kindKeyRequest.
func (c *Cluster) sendCodeKey(conn net.Conn) {
	message := encodeMessage(kindFailed, []byte("this node does not have the key yet"))
	if secret, ok := c.readCodeKey(); ok && c.self.Load().hasStream() {
		message = encodeMessage(kindEnd, secret)
	}
	_, _ = conn.Write(message) // the receiver sees the end of the connection
}

func (c *Cluster) fetchCodeKey(ctx context.Context, from heartbeat) ([]byte, error) {
	if from.Stream != c.self.Load().Stream {
		return nil, errors.New("the other node has not joined the cluster yet")
	}
	conn, r, err := c.transport.request(ctx, from.Name, from.Address, kindKeyRequest)
	if err != nil {
		return nil, err
	}
	defer c.transport.end(conn)
	kind, body, err := readMessage(r)
	switch {
	case err != nil:
		return nil, err
	case kind != kindEnd:
		return nil, fmt.Errorf("the other node says: %s", body)
	case len(body) != codeKeyBytes:
		return nil, fmt.Errorf("the login-code key has %d bytes, want %d", len(body), codeKeyBytes)
	}
	return body, nil
}
