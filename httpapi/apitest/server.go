package apitest

// TB is the part of testing.TB used by this package.
type TB interface {
	Helper()
	Cleanup(func())
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Name() string
}

// Server is a Node with controls: methods that change time, data or failures. A control that fails ends the test or, in
// the function of Node.Do, that function.
type Server struct {
	*Node
	t TB
}

// Start starts a node and closes it when the test ends.
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
		}
	})
	return &Server{node, t}
}

// must ends the test if err is not nil.
func (s *Server) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("apitest: %v", err)
	}
}

// run runs a control. Only one control runs at a time.
func (s *Server) run(control func() error) {
	s.t.Helper()
	s.must(s.withLock(control))
}

func (n *Node) withLock(control func() error) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.instance == nil {
		return errClosed
	}
	return control()
}

// Do calls f with a Server, for programs that are not tests. A control that fails ends f, and Do returns the error.
func (n *Node) Do(f func(s *Server)) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			controlErr, ok := cause.(controlError)
			if !ok {
				panic(cause)
			}
			err = controlErr.error
		}
	}()
	f(&Server{n, panicTB{}})
	return nil
}

// controlError is the panic value of a failed control within Do.
type controlError struct{ error }

// panicTB is the TB of a Server in Node.Do: Fatalf panics with a controlError. Controls call only Helper and Fatalf.
type panicTB struct{ TB }

// Helper implements TB.
func (panicTB) Helper() {}

// Fatalf implements TB.
func (panicTB) Fatalf(_ string, args ...any) {
	err, _ := args[0].(error)
	panic(controlError{err})
}
