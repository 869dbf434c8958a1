package node_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tasard/tasard/node"
)

// TestOpen_NamesTheField: an error of the configuration names its field and what can be done, and nothing is left
// behind.
func TestOpen_NamesTheField(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("text"), 0o644); err != nil {
		t.Fatal(err)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for name, tt := range map[string]struct {
		config node.Config
		kind   node.Kind
		field  string
	}{
		"no directory":     {node.Config{}, node.Invalid, "Dir"},
		"a file":           {node.Config{Dir: file}, node.Unwritable, "Dir"},
		"taken":            {node.Config{HTTP: node.HTTP{Listen: taken.Addr().String()}}, node.Busy, "HTTP.Listen"},
		"metrics taken":    {node.Config{Admin: node.Admin{Metrics: taken.Addr().String()}}, node.Busy, "Admin.Metrics"},
		"not here":         {node.Config{HTTP: node.HTTP{Listen: "203.0.113.1:80"}}, node.BadFile, "HTTP.Listen"},
		"half a pair":      {node.Config{HTTP: node.HTTP{TLS: node.TLS{Certificate: file}}}, node.Invalid, "HTTP.TLS"},
		"no key":           {node.Config{HTTP: node.HTTP{TLS: node.TLS{Certificate: file, Key: file + "x"}}}, node.BadFile, "HTTP.TLS.Key"},
		"no definitions":   {node.Config{Definitions: file}, node.BadFile, "Definitions"},
		"no catalogue":     {node.Config{Catalogue: file + "x"}, node.BadFile, "Catalogue"},
		"no sender":        {node.Config{Mail: node.Mail{Server: "mail.example.com:25"}}, node.Invalid, "Mail.From"},
		"nowhere to print": {node.Config{Mail: node.Mail{Method: "log"}}, node.Invalid, "Mail.Print"},
		"no cluster":       {node.Config{Cluster: node.Cluster{Node: 1}}, node.Invalid, "Cluster.Name"},
		"long socket":      {node.Config{Admin: node.Admin{Socket: "/" + strings.Repeat("x", 200)}}, node.BadFile, "Admin.Socket"},
		"socket elsewhere": {node.Config{Admin: node.Admin{Socket: file + "/x"}}, node.Unwritable, "Admin.Socket"},
	} {
		t.Run(name, func(t *testing.T) {
			c := tt.config
			if c.Dir == "" && tt.field != "Dir" {
				c.Dir = filepath.Join(t.TempDir(), "data")
			}
			n, err := node.Open(t.Context(), c)
			if err == nil {
				t.Fatal(n.Close(t.Context()))
			}
			var told *node.Error
			if !errors.As(err, &told) || told.Kind != tt.kind || told.Field != tt.field || !strings.HasPrefix(told.Error(), tt.field+": ") {
				t.Errorf("%+v", err)
			}
		})
	}
}

// TestOpen_ClosesItsListener: a listener that was handed over is closed whatever is wrong.
func TestOpen_ClosesItsListener(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := node.Open(t.Context(), node.Config{HTTP: node.HTTP{Listener: listener}}); err == nil {
		t.Error("a node without a directory")
	}
	if _, err := listener.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}

// TestClose_Again says the same as the first time, and the address is free.
func TestClose_Again(t *testing.T) {
	n, err := node.Open(t.Context(), node.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	<-n.Ready()
	for range 2 {
		if err := n.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if n.Err() != nil {
		t.Error(n.Err())
	}
	free, err := net.Listen("tcp", strings.TrimPrefix(n.URL(), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	_ = free.Close()
}
