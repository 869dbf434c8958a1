package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/tasard/tasard/engine"
)

const (
	identityName   = "cluster.json"
	raftDirName    = "raft"         // entries and votes of raft; never part of a backup
	lockName       = "cluster.lock" // allows one process at a time
	identityFormat = 2
)

// identity is the content of the file cluster.json: the node and the stream (the log of the cluster) to which the log
// in a data directory belongs.
type identity struct {
	Format  int           `json:"format"`
	Cluster string        `json:"cluster"`
	Stream  string        `json:"stream"` // random ID of the stream
	Node    engine.NodeID `json:"node"`
	Raft    uint64        `json:"raft"` // random ID of this directory in raft; a new directory is another node
}

// readIdentityFile reads cluster.json. found is false if there is no such file.
func readIdentityFile(dir string) (i identity, found bool, err error) {
	path := filepath.Join(dir, identityName)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return i, false, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &i)
	}
	if err != nil {
		return i, true, fmt.Errorf("read which cluster the directory belongs to: %s: %w", path, err)
	}
	return i, true, nil
}

// ErrDiverged means that this node's own log has records that the stream does not have.
var ErrDiverged = errors.New("the log of this node differs from the stream")

// ErrUnusable means that the data directory does not fit the cluster or this version.
var ErrUnusable = errors.New("this directory cannot be used")

func earlierVersion(dir string) error {
	return fmt.Errorf("%s belongs to a cluster of an earlier version, or has lost %s: %w: make a backup with the earlier version and restore "+
		"it, or start this node with an empty directory", dir, raftDirName, ErrUnusable)
}

// Membership names the cluster and the node to which a data directory belongs. Cluster is "" if it belongs to none.
type Membership struct{ Cluster, Node string }

// ReadMembership returns the membership of a data directory.
func ReadMembership(dir string) (Membership, error) {
	i, found, err := readIdentityFile(dir)
	if err == nil && found && (i.Cluster == "" || i.Node == 0) {
		err = fmt.Errorf("%s does not name a cluster and a node", filepath.Join(dir, identityName))
	}
	return Membership{i.Cluster, NodeName(i.Node)}, err
}

// Leave turns the data directory of a cluster node into that of a single node. It removes the files of the cluster and
// keeps the log. Danger: the node cannot join the cluster again with this log. If Leave is interrupted, call it again.
func Leave(dir string) error {
	lock, err := lockDir(dir)
	if err != nil {
		return err
	}
	err = install(dir)
	for _, name := range []string{raftDirName, identityName, lockName} {
		if err == nil {
			err = os.RemoveAll(filepath.Join(dir, name))
		}
	}
	if err == nil {
		err = syncDir(dir)
	}
	return errors.Join(err, unlockDir(lock))
}

func (i identity) check(c *Config) error {
	path := filepath.Join(c.Dir, identityName)
	switch {
	case i.Format < identityFormat:
		return earlierVersion(c.Dir)
	case i.Format != identityFormat:
		return fmt.Errorf("%s has format %d, this program supports %d; run the newer program on this directory",
			path, i.Format, identityFormat)
	case i.Cluster != c.Cluster:
		return fmt.Errorf("%s belongs to the cluster %q, not %q: give every node its own directory", path, i.Cluster, c.Cluster)
	case i.Node != c.Node:
		return fmt.Errorf("%s belongs to %s, this is %s: a node keeps its number; start another node with an empty directory",
			path, NodeName(i.Node), c.name())
	case i.Stream == "":
		return fmt.Errorf("%s does not name a stream", path)
	}
	return nil
}

// writeIdentity replaces cluster.json. When it returns nil, the new file is durable.
func writeIdentity(c *Config, i identity) error {
	i.Format, i.Cluster, i.Node = identityFormat, c.Cluster, c.Node
	text, err := json.MarshalIndent(i, "", "  ")
	if err != nil {
		return err
	}
	path := filepath.Join(c.Dir, identityName)
	if err := replaceFile(path, append(text, '\n')); err != nil {
		return fmt.Errorf("write which cluster the directory belongs to: %w", err)
	}
	return nil
}

// replaceFile writes data to a file atomically and durably.
func replaceFile(path string, data []byte) error {
	temporary := path + ".new"
	f, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(temporary, path)
	}
	if err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// syncDir makes earlier creations, renames and removals of files in a directory durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
