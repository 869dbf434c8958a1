package apitest

// TB is what the harness needs of a test; *testing.T, *testing.B and *testing.F have it.
type TB interface {
	Helper()
	Cleanup(func())
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Logf(format string, args ...any)
	Name() string
}

// Server is a Node with its controls. One that can't do what it is told fails the test; within Node.Do it ends what is done.
type Server struct {
	*Node
	t TB
}

// Start starts a node that ends with the test. At its end the node's log is held against what it knew.
func Start(t TB, options ...Option) *Server {
	t.Helper()
	node, err := Open(options...)
	if err != nil {
		t.Fatalf("apitest: %s: %v", t.Name(), err)
		return nil
	}
	t.Cleanup(func() {
		t.Helper()
		if err := node.Close(); err != nil {
			t.Errorf("apitest: end of %s: %v", t.Name(), err)
			t.Logf("apitest: %s: its last requests were %s", t.Name(), node.requests.newest())
		}
	})
	return &Server{node, t}
}

// must fails the test over an error.
func (s *Server) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("apitest: %v", err)
	}
}

// run does what a control is for, alone.
func (s *Server) run(do func() error) {
	s.t.Helper()
	s.must(s.withLock(do))
}

func (n *Node) withLock(do func() error) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.instance == nil {
		return errClosed
	}
	return do()
}

// Do is for programs, which have no test to fail: it gives do the controls. The first that can't do what it is told ends do, and its
// error is returned.
func (n *Node) Do(do func(s *Server)) (err error) {
	defer func() {
		if thrown := recover(); thrown != nil {
			failed, ours := thrown.(controlError)
			if !ours {
				panic(thrown)
			}
			err = failed.error
		}
	}()
	do(&Server{n, panicTB{}})
	return nil
}

// controlError is what a control within Do panics with.
type controlError struct{ error }

// panicTB is the TB of Do: Fatalf is only called by must.
type panicTB struct{ TB }

// Helper is TB.
func (panicTB) Helper() {}

// Fatalf is TB.
func (panicTB) Fatalf(_ string, args ...any) {
	err, _ := args[0].(error)
	panic(controlError{err})
}
