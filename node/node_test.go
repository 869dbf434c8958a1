package node_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/node"
)

// TestOpen_NamesTheField: an error of the configuration names its field, and Open closes the listener.
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
	given, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	open := filepath.Join(dir, "open")
	if err := errors.Join(os.Mkdir(open, 0o700), os.Chmod(open, 0o777)); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		config node.Config
		kind   node.Kind
		field  string
	}{
		"open to all":      {node.Config{Dir: open}, node.BadFile, "Dir"},
		"no directory":     {node.Config{HTTP: node.HTTP{Listener: given}}, node.Invalid, "Dir"},
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
			var reported *node.Error
			if !errors.As(err, &reported) || reported.Kind != tt.kind || reported.Field != tt.field || !strings.HasPrefix(reported.Error(), tt.field+": ") {
				t.Errorf("%+v", err)
			}
		})
	}
	if _, err := given.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the listener of a failed Open: %v", err)
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

// logLines is a slog.Handler that sends each record as "message condition state".
type logLines struct {
	slog.Handler
	lines chan string
}

func (h logLines) Enabled(context.Context, slog.Level) bool { return true }

func (h logLines) Handle(_ context.Context, r slog.Record) error {
	line := r.Message
	r.Attrs(func(a slog.Attr) bool {
		if a.Key != "detail" {
			line += " " + a.Value.String()
		}
		return true
	})
	if strings.HasPrefix(r.Message, "problem ") {
		h.lines <- line
	}
	return nil
}

// TestProblemsAreLogged: a problem is logged when it begins and when it ends.
func TestProblemsAreLogged(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 6, 30, 15, 0, 0, 0, time.UTC)
	log := logLines{slog.DiscardHandler, make(chan string, 16)}
	n, err := node.Open(t.Context(), node.Config{Dir: t.TempDir(), Clock: func() time.Time { return now }, Logger: slog.New(log)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := n.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	if got := <-log.lines; got != "problem began data empty" {
		t.Errorf("logged %q", got)
	}
	_, err = n.System().Observe([]engine.Refresh{{SourceID: "manual", ObservedAt: now, Observations: []engine.Observation{
		{InstitutionID: "popular", Currency: "USD", Buy: "58.10", Sell: "59.30"},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	if got := <-log.lines; got != "problem ended data empty" {
		t.Errorf("logged %q", got)
	}
}
