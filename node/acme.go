package node

import (
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"golang.org/x/net/netutil"

	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/node/acme"
)

const (
	acmeDir            = "https" // in the data directory
	redirectConnsMax   = 128     // further connections wait in the backlog
	redirectTimeout    = 5 * time.Second
	redirectHeaderSize = 8 << 10
)

func (c *Config) acme() acme.Config {
	a := &c.HTTP.ACME
	return acme.Config{
		Name: a.Name, Dir: filepath.Join(c.Dir, acmeDir), Authority: a.Authority, UserAgent: "tasard/" + c.Version, Client: a.Client, Clock: c.Clock, Logger: c.Logger,
	}
}

// listenRedirect opens the listener for plain HTTP. It returns nil without HTTP.ACME.
func (n *Node) listenRedirect(opened *closers) (listener net.Listener, err error) {
	a := &n.config.HTTP.ACME
	if listener = a.RedirectListener; listener == nil && a.Name != "" {
		listener, err = Listen(a.Redirect, "HTTP.ACME.Redirect")
	}
	if listener != nil {
		opened.add(listener.Close)
	}
	return listener, err
}

// openACME opens the manager of the certificate of HTTP.ACME, which reads the stored certificate.
func (n *Node) openACME() (err error) {
	if n.config.HTTP.ACME.Name == "" {
		return nil
	}
	if n.certificate.manager, err = acme.Open(n.config.acme()); err != nil {
		return &Error{BadFile, "HTTP.ACME", err}
	}
	return nil
}

// startRedirect starts the server for plain HTTP. listener may be nil.
func (n *Node) startRedirect(listener net.Listener) {
	if listener == nil {
		return
	}
	n.redirect = &redirectServer{done: make(chan struct{}), server: &http.Server{
		Handler: n.certificate.manager, ReadTimeout: redirectTimeout, WriteTimeout: redirectTimeout, MaxHeaderBytes: redirectHeaderSize,
		ErrorLog: log.New(io.Discard, "", 0),
	}}
	n.redirect.server.SetKeepAlivesEnabled(false)
	go func() {
		defer close(n.redirect.done)
		if err := n.redirect.server.Serve(netutil.LimitListener(listener, redirectConnsMax)); !errors.Is(err, http.ErrServerClosed) {
			n.config.Logger.Error("plain HTTP is not answered any more: the certificate can't be renewed; start the node again", "cause", err.Error())
		}
	}()
}

// redirectServer is the server for plain HTTP; nil if there is none.
type redirectServer struct {
	server *http.Server
	done   chan struct{} // closed when Serve has returned
}

func (r *redirectServer) stop() {
	if r == nil {
		return
	}
	_ = r.server.Close() // redirects in flight need no answer
	<-r.done
}

// certificateCondition returns the health condition "certificate".
func (n *Node) certificateCondition() engine.Condition {
	condition := engine.HealthyCondition("certificate")
	failure, expiry := n.certificate.manager.Failure(), n.certificate.expiry()
	if failure != nil {
		condition.Since = failure.Since
	}
	switch {
	case expiry.IsZero():
		condition.State, condition.Down = "missing", true
		condition.Detail = "There is no certificate for HTTPS yet. The authority must reach this node at port 80 of its name; the log says what went wrong."
	case !n.config.Clock().Before(expiry):
		condition.State, condition.Down = "expired", true
		condition.Detail = "The certificate for HTTPS has expired and could not be renewed. The log says why."
	case failure != nil:
		condition.State = "renewal_failing"
		condition.Detail = "The certificate for HTTPS could not be renewed and will expire. The log says why."
	}
	return condition
}
