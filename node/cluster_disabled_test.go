//go:build nocluster

package node_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tasard/tasard/node"
)

// TestOpen_NoCluster: a build without the cluster opens no node of one, and says how to get a build that does.
func TestOpen_NoCluster(t *testing.T) {
	members := []node.Member{{Node: 1, Address: "127.0.0.1:1"}, {Node: 2, Address: "127.0.0.1:2"}, {Node: 3, Address: "127.0.0.1:3"}}
	_, err := node.Open(t.Context(), node.Config{Dir: t.TempDir(), Cluster: node.Cluster{Name: "a", Node: 1, Members: members, Insecure: true}})
	var of *node.Error
	if !errors.As(err, &of) || of.Field != "Cluster" || of.Kind != node.Invalid || !strings.Contains(err.Error(), "build without the tag") {
		t.Errorf("%v", err)
	}
}
